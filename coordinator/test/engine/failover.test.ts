// Another server of the database takes over, with or without the last commits of the one before.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import type { Db } from '../../db/client.ts'
import { createPulse } from '../../engine/commit/pulse.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { makeClockMovable, moveClock } from '../_kit/database-clock.ts'

const HOUR_MS = 3_600_000
const SECOND_MS = 1000

let c: TestCoordinator
const agents: TestAgent[] = []

/** Before a session has prepared the pulse: it would go on with the function of PostgreSQL. */
async function prepare(db: Db): Promise<void> {
  await makeClockMovable(db)
  await db`create table shifted.server (started_at timestamptz not null)`
  await db`insert into shifted.server values (pg_catalog.pg_postmaster_start_time())`
  await db`
    create function shifted.pg_postmaster_start_time() returns timestamptz language sql volatile
    begin atomic select started_at from shifted.server; end`
}

before(async () => {
  const pulsed = Promise.withResolvers<void>()
  const stopLooking = onMoment(({ name }) => void (name === 'pulse.done' && pulsed.resolve()))
  c = await aCoordinatorOfItsOwn({}, { prepare })
  // The only one of its own: nobody sweeps here.
  await pulsed.promise
  stopLooking()
})
after(async () => {
  for (const agent of agents) agent.close()
  await c?.stop()
})

interface Line {
  name: string
  level: string
  since?: number
  until?: number
  advice?: string
}

const NAMES = ['database.commits.lost', 'database.server.changed']

/** A coordinator that does nothing but pulses, and its agents. */
function aPulse() {
  const lines: Line[] = []
  const log = createLog({}, 'debug', { write: (line) => void lines.push(JSON.parse(line) as Line) })
  const reasons: string[] = []
  const letGo = (reason: string) => {
    reasons.push(reason)
    return Promise.resolve()
  }
  let db: Db = c.deps.db
  const through = ((...ask: Parameters<Db>) => db(...ask)) as unknown as Db
  const act = createPulse({ ...c.deps, db: through, log, sockets: { letGo }, answeredMs: 0 })
  /** Answers what it said of a failover. */
  async function pulse(): Promise<Line[]> {
    lines.length = 0
    await act()
    return lines.filter(({ name }) => NAMES.includes(name))
  }
  return {
    pulse,
    reasons,
    /** It is told that this one is committed, and the server that takes over does not have it. */
    loseOne: async () => {
      const undo = new Error('undo')
      await assert.rejects(
        c.db.begin(async (tx) => {
          db = tx as unknown as Db
          await act()
          throw undo
        }),
        undo,
      )
      db = c.deps.db
    },
  }
}

test('a pulse that follows one of before our own says that commits are lost, and agents come again', async () => {
  const { pulse, loseOne, reasons } = aPulse()
  assert.deepEqual([...(await pulse()), ...(await pulse())], [])
  await loseOne()
  const [line, ...more] = await pulse()
  assert.deepEqual([line?.name, line?.level, more], ['database.commits.lost', 'error', []])
  assert.ok(line!.since! < line!.until!)
  assert.match(line!.advice!, /windlass admin restored/)
  assert.deepEqual(await pulse(), [], 'once')
  await untilLetGo(reasons, 1)
  assert.match(reasons[0]!, /lost/)
})

test('nothing is taken for lost where others pulse and the clock of the database is set', async () => {
  const pulses = [aPulse(), aPulse()]
  const said: Line[] = []
  const round = async () => {
    for (const { pulse } of pulses) said.push(...(await pulse()))
  }
  await round()
  for (const byMs of [-SECOND_MS / 2, -SECOND_MS, HOUR_MS, -2 * HOUR_MS, HOUR_MS]) {
    await moveClock(c.db, byMs)
    await round()
    await round()
  }
  // As a clock that was set back has left it.
  await c.db`update pulse set at = at - interval '3 seconds'`
  await round()
  await Promise.all([...pulses, ...pulses].map(async ({ pulse }) => said.push(...(await pulse()))))
  assert.deepEqual(said, [])
})

test('when another server answers, or the same one was started anew, agents come again', async () => {
  const { pulse, reasons } = aPulse()
  await pulse()
  await c.db`update shifted.server set started_at = started_at + interval '1 second'`
  const [line, ...more] = await pulse()
  assert.deepEqual([line?.name, line?.level, more], ['database.server.changed', 'info', []])
  assert.deepEqual(await pulse(), [])
  await untilLetGo(reasons, 1)
  assert.match(reasons[0]!, /taken over/)
})

test('all agents that are let go are told to come again, and are welcomed', async () => {
  const three = await Promise.all([anAgent(c), anAgent(c), anAgent(c)])
  agents.push(...three)
  const links = await Promise.all(three.map((agent) => agent.connect()))
  await c.deps.sockets.letGo('for a reason')
  for (const link of links) {
    const { code, reason } = await link.closed()
    assert.deepEqual([code, reason], [1013, 'for a reason'])
  }
  await Promise.all(three.map((agent) => agent.connect()))
  assert.equal(c.deps.sockets.size, 3)
})

async function untilLetGo(reasons: string[], count: number): Promise<void> {
  while (reasons.length < count) await new Promise((resolve) => setImmediate(resolve))
}
