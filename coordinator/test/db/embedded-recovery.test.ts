import assert from 'node:assert/strict'
import { mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { isConnectionLoss, openDatabase } from '../../db/client.ts'
import { startEmbedded } from '../../db/embedded.ts'
import { aHome, keep, notesIn, log, start, using } from '../_kit/embedded-home.ts'
import { holdServer } from '../_kit/server-holder.ts'

test('a commit survives kill -9 of the server, also while a long statement keeps a session busy', async (t) => {
  const home = await aHome()
  const first = await start(t, home)
  await keep(first.url, 'committed')
  const busy = openDatabase({ url: first.url, max: 1, log })
  const statement = assert.rejects(busy.db`select count(*) from generate_series(1, 3e9)`.execute())
  await using(first.url, async (db) => {
    for (let looks = 0; looks < 500; looks++) {
      const [row] =
        await db`select count(*)::int as n from pg_stat_activity where query like '%3e9%' and state = 'active'`
      if (Number(row?.n) > 1) return
    }
    assert.fail('the long statement never started')
  })

  process.kill(first.pid, 'SIGKILL')
  assert.deepEqual(await first.exited, { code: null, signal: 'SIGKILL' })
  const second = await start(t, home)
  assert.equal(second.adopted, false)
  assert.deepEqual(await notesIn(second.url), ['committed'])
  await statement
  await busy.close()
})

test('files of a killed server are no obstacle when their process number is taken again', async (t) => {
  const home = await aHome()
  const first = await start(t, home)
  await keep(first.url, 'committed')
  process.kill(first.pid, 'SIGKILL')
  await first.exited
  // As after a restart of a container, where the same small numbers are dealt again.
  const file = join(home, 'postgres/data/postmaster.pid')
  await writeFile(file, (await readFile(file, 'utf8')).replace(/^\d+/, String(process.pid)))
  const lock = join(home, 'postgres/socket/.s.PGSQL.5432.lock')
  await writeFile(lock, (await readFile(lock, 'utf8')).replace(/^\d+/, String(process.pid)))

  const second = await start(t, home)
  assert.deepEqual(await notesIn(second.url), ['committed'])
})

test('a server whose supervisor was killed is adopted, told of its end, and stopped', async (t) => {
  const home = await aHome()
  const holder = await holdServer(home)
  await keep(holder.url, 'committed')
  await holder.kill()

  const adopter = await start(t, home)
  assert.equal(adopter.adopted, true)
  assert.equal(adopter.pid, holder.pid)
  assert.deepEqual(await notesIn(adopter.url), ['committed'])
  await adopter.stop()
  assert.deepEqual(await adopter.exited, { code: null, signal: null })
  await assert.rejects(notesIn(adopter.url), isConnectionLoss)
})

test('an adopted server that is killed settles `exited`, and the home can be started again', async (t) => {
  const home = await aHome()
  const holder = await holdServer(home)
  await holder.kill()
  const adopter = await start(t, home)
  process.kill(adopter.pid, 'SIGKILL')
  await adopter.exited
  const next = await start(t, home)
  assert.equal(next.adopted, false)
})

test('an orphan that nobody can reach any more is replaced', async (t) => {
  const home = await aHome()
  const holder = await holdServer(home)
  await keep(holder.url, 'committed')
  await holder.kill()
  await rm(join(home, 'postgres/socket/.s.PGSQL.5432'))
  const next = await start(t, home)
  assert.equal(next.adopted, false)
  assert.deepEqual(await notesIn(next.url), ['committed'])
})

test('a home in use is refused to a second start, and of two at once one gets it', async (t) => {
  const home = await aHome()
  const both = await Promise.allSettled([startEmbedded({ home, log }), startEmbedded({ home, log })])
  const winners = both.filter((each) => each.status === 'fulfilled')
  t.after(() => Promise.all(winners.map((each) => each.value.stop())))
  assert.equal(winners.length, 1)
  await assert.rejects(startEmbedded({ home, log }), /in use by the process \d+.*WINDLASS_HOME/s)
})

test('a start that was cut short while it created the database is made up for', async (t) => {
  const home = await aHome()
  await mkdir(join(home, 'postgres/data.new/base'), { recursive: true })
  await writeFile(join(home, 'postgres/data.new/PG_VERSION'), '18\n')
  await writeFile(join(home, 'postgres/password'), 'half')
  const server = await start(t, home)
  await keep(server.url, 'works')
})
