import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { isConnectionLoss, openDatabase } from '../../db/client.ts'
import { waitUntil } from '../../db/embedded-process.ts'
import { startTestServer, testDatabase } from '../_kit/database.ts'

const log = createLog({ part: 'test' }, 'error')
const server = await startTestServer()
const admin = openDatabase({ url: server.url, max: 1, log })
const given = process.env.WINDLASS_TEST_DATABASE_URL
process.env.WINDLASS_TEST_DATABASE_URL = server.url
after(async () => {
  if (given === undefined) delete process.env.WINDLASS_TEST_DATABASE_URL
  else process.env.WINDLASS_TEST_DATABASE_URL = given
  await admin.close()
  await server.stop()
})

async function databases(): Promise<string[]> {
  const rows = await admin.db<
    { datname: string }[]
  >`select datname from pg_database where datname like 'windlass%' order by 1`
  return rows.map((row) => row.datname.replace(/_[0-9a-f]{10,}$/, ''))
}

test('databases asked for at once are made from one template, know nothing of each other and are dropped', async () => {
  const many = await Promise.all([testDatabase(), testDatabase(), testDatabase(), testDatabase()])
  assert.equal((await databases()).filter((name) => name === 'windlass_template').length, 1)
  const [one, other] = many
  await one.db`create table only_here (id int)`
  await assert.rejects(other.db`select * from only_here`, { code: '42P01' })
  assert.notEqual((await other.db`select * from windlass_migrations`).length, 0)
  await Promise.all(many.map((each) => each.close()))
  assert.deepEqual(await databases(), ['windlass_template'])
})

test('a database is dropped even when a test left something connected to it', async () => {
  const database = await testDatabase()
  const forgotten = openDatabase({ url: database.url, max: 1, log })
  await forgotten.db`select 1`
  await database.close()
  await assert.rejects(forgotten.db`select 1`)
  await forgotten.close()
})

test('a test process that is killed leaves no server behind', async () => {
  const kit = join(import.meta.dirname, '../_kit/database.ts')
  const program = `const { startTestServer } = await import(${JSON.stringify(kit)}); console.log((await startTestServer()).url)`
  const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const [url] = (await once(createInterface(child.stdout), 'line')) as [string]
  child.kill('SIGKILL')
  const orphan = openDatabase({ url, max: 1, log })
  const isGone = () => orphan.db`select 1`.then(() => false, isConnectionLoss)
  await waitUntil(isGone, 10_000, 'the server to go')
  await orphan.close()
  const home = join(new URL(url).searchParams.get('host') ?? '', '../..')
  await waitUntil(
    () =>
      access(home).then(
        () => false,
        () => true,
      ),
    10_000,
    'its folder to go',
  )
})
