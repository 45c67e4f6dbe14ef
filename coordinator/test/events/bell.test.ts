import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { newId } from '@windlass/shared/ids.ts'
import { type Bell, createBell, type Topic } from '../../events/bell.ts'
import { testDatabase } from '../_kit/database.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'

const log = createLog({}, 'error')
const newRuns = (count: number) => Array.from({ length: count }, () => newId('run'))

const database = await testDatabase()
const { db } = database
let bell: Bell
let other: Bell
/** What the other one has heard: ids, or a topic of which it is to look at everything. */
let heard: string[] = []
let losses = 0

before(async () => {
  bell = createBell(db, log)
  other = createBell(db, log)
  await other.listen({
    rung: (_, id) => heard.push(id),
    rungAll: (topic: Topic) => heard.push(topic),
    lost: () => losses++,
  })
})
after(async () => {
  await Promise.all([bell.close(), other.close()])
  await database.close()
})

/** Rings for all of these at once. Answers what is heard of it, without what every bell tells in the end. */
async function hearing(...rings: [Topic, string][]): Promise<string[]> {
  heard = []
  for (const [topic, id] of rings) bell.ring(topic, id)
  bell.ring('workflows', 'the last')
  await until('the last ring', () => heard.includes('the last'))
  return heard.filter((each) => each !== 'the last').toSorted()
}

test('whoever begins to listen looks at everything', () => {
  assert.deepEqual(heard.toSorted(), ['org', 'pool', 'run', 'runner', 'workflows'])
})

test('as many runs as one commit of entries has are told by name', async () => {
  const runs = newRuns(4000)
  assert.deepEqual(await hearing(...runs.map((id): [Topic, string] => ['run', id])), runs.toSorted())
})

test('of more runs than that only runs are looked at, and the rest is told by name', async () => {
  const [runner, pool] = [newId('rnr'), newId('pool')]
  const runs = newRuns(4001).map((id): [Topic, string] => ['run', id])
  assert.deepEqual(await hearing(['runner', runner], ...runs, ['pool', pool]), [runner, pool, 'run'].toSorted())
})

test('runs beyond number that have grown elsewhere make nobody look at polls or agents', async (t) => {
  const c: TestCoordinator = await aCoordinator()
  const second = await c.another()
  t.after(() => c.stop())
  const agent = (await anAgent(c)).at(second)
  t.after(() => agent.close())
  await agent.connect()
  const { tails, dispatchers, sockets } = second.deps
  const [ringAll, pokeAll, ids] = [
    t.mock.method(tails, 'ringAll').mock,
    t.mock.method(dispatchers, 'pokeAll').mock,
    t.mock.method(sockets, 'ids').mock,
  ]
  for (const id of newRuns(5000)) c.deps.bell.ring('run', id)
  await until('the readers of runs to look', () => ringAll.callCount() > 0)
  assert.deepEqual([pokeAll.callCount(), ids.callCount()], [0, 0])
})

test('a listener is told that its connection was lost, before it hears again', async () => {
  heard = []
  assert.equal(losses, 0)
  await db`
    select pg_terminate_backend(pid)
    from pg_stat_activity
    where datname = current_database() and query ilike 'listen "windlass"%'`
  await until('it to listen again', () => heard.length > 0)
  assert.equal(losses, 1)
})

test('one that is refused again and again has lost its connection once', async () => {
  const calls: { onListen?: () => void; onLost?: () => void } = {}
  const listen = (...[, , onListen, onLost]: Parameters<typeof db.listen>) => {
    Object.assign(calls, { onListen, onLost })
    return Promise.resolve()
  }
  let lost = 0
  await createBell({ listen } as unknown as typeof db, log).listen({ rung() {}, rungAll() {}, lost: () => lost++ })
  calls.onListen?.()
  for (let tries = 0; tries < 3; tries++) calls.onLost?.()
  assert.equal(lost, 1)
  calls.onListen?.()
  calls.onLost?.()
  assert.equal(lost, 2)
})
