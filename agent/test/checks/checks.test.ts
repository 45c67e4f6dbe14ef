import assert from 'node:assert/strict'
import { rename, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { createChecks } from '../../checks/checks.ts'
import { diskChecks } from '../../checks/disk.ts'
import { createFacts } from '../../facts.ts'
import { aFolder, aLog } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { withAgent } from '../_kit/with-agent.ts'

const noFacts = () => createFacts({ labels: [], platform: 'test', capabilities: [], isolation: null })

test('what is wrong stands in the facts until it is mended, and in the log once', async () => {
  const { lines, log } = aLog()
  const facts = noFacts()
  const versions: number[] = []
  facts.onChange(() => versions.push(facts.version))
  let wrong: string | undefined = 'no room: make some'
  const checks = createChecks([{ name: 'room', freshMs: 0, look: () => wrong }], { facts, log })
  await checks.look('all')
  await checks.look('all')
  assert.deepEqual(facts.current().unready, [{ check: 'room', message: 'no room: make some' }])
  assert.equal(facts.isReady(), false)
  wrong = undefined
  await checks.look('all')
  assert.equal(facts.isReady(), true)
  assert.deepEqual(versions, [2, 3])
  assert.deepEqual(
    lines.map(({ name }) => name),
    ['check.fails', 'check.works'],
  )
})

test('a check that throws has failed, and one that costs something is asked only when work is wanted', async () => {
  const { log } = aLog()
  const facts = noFacts()
  let asked = 0
  const look = () => {
    asked += 1
    throw new Error('broken')
  }
  const checks = createChecks([{ name: 'dear', freshMs: 60_000, isCostly: true, look }], { facts, log })
  await checks.look('cheap')
  assert.equal(asked, 0)
  await Promise.all([checks.look('all'), checks.look('all')])
  assert.equal(asked, 1, 'its answer serves for a while')
  assert.deepEqual(facts.current().unready, [{ check: 'dear', message: 'broken' }])
})

test('too little room on the disk is told with the way out', async () => {
  const { folder, remove } = await aFolder()
  let asked = 0
  const makeRoom = () => void (asked += 1)
  const [room] = diskChecks(folder, Number.MAX_SAFE_INTEGER, makeRoom)
  assert.match((await room!.look())!, /MiB are free.*make room, or lower WINDLASS_AGENT_DISK_RESERVE_MB/)
  assert.equal(asked, 1, 'what can be had again is given back')
  const [enough] = diskChecks(folder, 0, makeRoom)
  assert.equal(await enough!.look(), undefined)
  assert.equal(asked, 1)
  await remove()
})

withAgent('an agent whose folder is gone takes nothing until it is back', async ({ fake, agent, folder }) => {
  await until('it polls', () => fake.polling() > 0)
  await rename(path.join(folder, 'workspaces'), path.join(folder, 'away'))
  await until('the check fails', () =>
    agent.lines.some(({ name, check }) => name === 'check.fails' && check === 'workspaces'),
  )
  await until('the poll is given up', () => fake.polling() === 0)
  const placement = fake.offer(await aProgram(`return 1`))
  await rename(path.join(folder, 'away'), path.join(folder, 'workspaces'))
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
})

test('a disk that is full and goes on to change a little is no news each time', async (context) => {
  const { folder, remove } = await aFolder()
  context.after(remove)
  const [room] = diskChecks(folder, Number.MAX_SAFE_INTEGER)
  const before = await room!.look()
  await writeFile(path.join(folder, 'more'), Buffer.alloc(8 * 1024 * 1024, 1))
  assert.equal(await room!.look(), before)
})
