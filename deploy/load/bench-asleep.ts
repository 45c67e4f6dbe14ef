import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { JournalOp } from '@windlass/shared/wire/journal.ts'
import { statementsSeen } from './bench-idle.ts'
import type { BenchInstance } from './bench-instance.ts'
import { httpLoad } from './http-load.ts'
import { wait } from './measure.ts'
import { livingMiB } from './processes.ts'
import { atMost, type Report } from './row.ts'
import { settled } from './settled.ts'
import type { SimulatedAgent } from './simulated-agent.ts'

const RUNS = 10_000
const CALLERS = 64
/** From the first trigger on: by then all are asleep, and have been watched. */
const DUE_MS = 60_000
const SETTLE_MS = 3000
const WATCH_MS = 10_000

/**
 * Ten thousand runs asleep at once, none of which has a process, and all of which are due at the same moment. The agent
 * is simulated: what is measured is what they cost the coordinator and the database, not ten thousand replays.
 */
export async function benchAsleep(instance: BenchInstance, report: Report): Promise<void> {
  await instance.db`create extension if not exists pg_stat_statements`
  const dueAt = Date.now() + DUE_MS
  const agent = await instance.simulateAgent({
    slots: 256,
    onRun: (offer, owner) => (offer.replay ? wakeUp(owner, offer) : fallAsleep(owner, offer, dueAt)),
    onFrame: (frame) => {
      if (frame.t === 'ack') for (const ack of frame.acks) agent.release(ack.run)
    },
  })
  const before = await databaseBytes(instance)
  await trigger(instance)
  await settled(instance, () => areAll(instance, 'sleeping'), DUE_MS - SETTLE_MS - WATCH_MS)
  const perRun = ((await databaseBytes(instance)) - before) / RUNS / 1024
  report({ name: `database, each of ${RUNS} runs asleep`, value: perRun, unit: 'KiB' })
  const resident = livingMiB(instance.coordinatorPid, 'coordinator')
  report({ name: 'memory, coordinator, with them', value: resident, unit: 'MiB' })

  await wait(SETTLE_MS)
  await instance.db`select pg_stat_statements_reset()`
  const since = performance.now()
  await wait(WATCH_MS)
  const rate = (await statementsSeen(instance)) / ((performance.now() - since) / 1000)
  report({
    name: 'database statements while they sleep',
    value: rate,
    unit: '/s',
    better: 'lower',
    goal: atMost(rate, 5, '/s'),
  })

  await wait(dueAt - Date.now())
  await settled(instance, () => areAll(instance, 'completed'))
  const seconds = (Date.now() - dueAt) / 1000
  report({ name: 'due at once, until the last has gone on', value: seconds, unit: 's', goal: atMost(seconds, 60, 's') })
  agent.close()
}

const command = (op: JournalOp): Entry => ['j', Date.now(), JSON.stringify(op)]

function fallAsleep(agent: SimulatedAgent, offer: Offer, until: number): void {
  const identity = {
    n: 1,
    position: 1,
    parent: '',
    name: '',
    hash: 'simulated',
    occurrence: 1,
    args: '[]',
    site: 'index.ts:2:9',
  }
  tell(agent, offer, [
    ['start', Date.now()],
    command({ op: 'open', entry: { ...identity, kind: 'sleep' }, ask: { for: 'sleep', until } }),
    ['park', Date.now(), 'sleep', 1],
    ['end', Date.now(), { how: 'evicted', reason: 'simulated' }, 0],
  ])
}

function wakeUp(agent: SimulatedAgent, offer: Offer): void {
  tell(agent, offer, [
    ['start', Date.now()],
    ['resume', Date.now()],
    command({ op: 'deliver', list: [[1, 1, 1, 1]] }),
    ['end', Date.now(), { how: 'returned', outputText: 'null' }, 1],
  ])
}

function tell(agent: SimulatedAgent, { run, epoch }: Offer, entries: Entry[]): void {
  agent.send({ t: 'entries', batches: [{ run, epoch, first: 1, entries }] })
}

async function trigger({ url, apiKey }: BenchInstance): Promise<void> {
  const path = '/v1/orgs/default/workflows/noop-fresh/runs'
  const load = await httpLoad({ url, path, apiKey, body: '{}', connections: CALLERS, requests: RUNS, expect: 201 })
  if (load.failed > 0) throw new Error(`${load.failed} triggers were refused`)
}

async function areAll({ db }: BenchInstance, status: string): Promise<boolean> {
  const [row] = await db<[{ n: number }]>`select count(*)::int as n from runs where status = ${status}`
  return row.n === RUNS
}

async function databaseBytes({ db }: BenchInstance): Promise<number> {
  const [row] = await db<[{ bytes: number }]>`select pg_database_size(current_database())::float8 as bytes`
  return row.bytes
}
