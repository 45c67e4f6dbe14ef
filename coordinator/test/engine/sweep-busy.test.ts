import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { CoordinatorFrame, Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { Ask, JournalOp, JournalRecord } from '@windlass/shared/wire/journal.ts'
import { sweepRunsOnce } from '../../engine/sweep/sweep.ts'
import { anAgent, end, type Link, placementOf, returned, start, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

// Runs of all sorts on their way: each look must find every one of them with its owner, at whatever moment it comes.

const RUNS = 120
const SLOTS = 16
const WORKFLOWS = ['any', 'narrow', 'late', 'unsteady', 'any']

const ASKS: Ask[] = [
  { for: 'sleep', ms: 5 },
  { for: 'sleep', ms: 60 },
  { for: 'input', prompt: 'Sure?', schemaText: null, timeoutMs: null, onTimeoutText: null },
  { for: 'input', prompt: 'Still?', schemaText: null, timeoutMs: 30, onTimeoutText: '"no"' },
  { for: 'child', workflow: 'leaf', inputText: 'null', version: null, tags: [], priority: 0 },
]

const command = (op: JournalOp): Entry => ['j', Date.now(), JSON.stringify(op)]
/** Entries are numbered over all attempts. */
const open = (ask: Ask, n: number): Entry =>
  command({
    op: 'open',
    ask,
    entry: { n, position: n, parent: '', kind: ask.for, name: '', hash: ask.for, occurrence: 1, args: '[]', site: '' },
  })
const park = (ask: Ask): Entry => ['park', Date.now(), ask.for === 'step' ? 'sleep' : ask.for, 1]
const goOn = ({ workflow, attempt }: Offer, n: number): Entry[] => [
  ['resume', Date.now()],
  command({ op: 'deliver', list: [[1, n, n, 1]] }),
  end(
    workflow.slug === 'unsteady' && attempt < 3
      ? { how: 'threw', error: { name: 'Error', message: 'not yet' } }
      : returned(null),
  ),
]

/** Executes what it is offered, as an agent would: parks, evicts every third run, and goes on when it is told. */
async function execute(agent: TestAgent, link: Link, stopped: AbortSignal): Promise<void> {
  const parked = new Map<string, { offer: Offer; next: number }>()
  const busy = new Set<Promise<unknown>>()
  let taken = 0
  const track = (work: Promise<unknown>) => {
    busy.add(work)
    void work.finally(() => busy.delete(work))
  }
  const hear = (frame: CoordinatorFrame) => {
    if (frame.t === 'wake') for (const { run } of frame.runs) wake(run)
    if (frame.t === 'cancel' || frame.t === 'beat')
      for (const { run } of frame.t === 'cancel' ? frame.runs : frame.cancel) stop(run)
  }
  const wake = (run: string) => {
    const one = parked.get(run)
    if (!one) return
    parked.delete(run)
    track(link.report(one.offer, one.next, ...goOn(one.offer, one.offer.journal.entries + 1)))
  }
  const stop = (run: string) => {
    const one = parked.get(run)
    if (!one) return
    parked.delete(run)
    track(link.report(one.offer, one.next, end({ how: 'cancelled', forced: false })))
  }
  const begin = async (offer: Offer, ask: Ask, isEvicted: boolean) => {
    parked.set(offer.run, { offer, next: 4 })
    if (isEvicted) parked.delete(offer.run)
    const gone: Entry[] = isEvicted ? [end({ how: 'evicted', reason: 'age' })] : []
    await link.report(offer, 1, start(), open(ask, offer.journal.entries + 1), park(ask), ...gone)
  }
  const replay = async (offer: Offer) => {
    const records = JSON.parse(offer.journal.text ?? '[]') as JournalRecord[]
    const wait = records.find((one) => one.attempt === offer.attempt)
    assert.ok(wait && wait.state !== 'open', 'a run at rest is claimed when there is something for it')
    await link.report(offer, 1, start(), ...goOn(offer, wait.n))
  }
  const listening = (async () => {
    for (let n = 1; !stopped.aborted; n++) {
      const beat = await link.heartbeat(n, ...[...parked.values()].map(({ offer }) => placementOf(offer)))
      for (const frame of [beat, ...link.unread()]) hear(frame)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
  })()
  while (!stopped.aborted) {
    const offers = await agent.poll(SLOTS, 100)
    if (offers.length === 0) continue
    const { runs } = await link.accept(...offers)
    for (const offer of offers.filter((one) => runs.some(([run]) => run === one.run))) {
      taken++
      const isLeaf = offer.workflow.slug === 'leaf'
      if (offer.replay) track(replay(offer))
      else if (isLeaf) track(link.report(offer, 1, start(), end(returned(null))))
      else track(begin(offer, ASKS[taken % ASKS.length]!, taken % 3 === 0))
    }
  }
  await Promise.all([listening, ...busy])
}

/** Answers every question that it sees. */
async function answer(c: TestCoordinator, stopped: AbortSignal): Promise<void> {
  while (!stopped.aborted) {
    const { inputs } = await c.call(ops.inputs.list, { org: c.org })
    // Another answer, the time limit or a cancel may come first.
    await Promise.allSettled(inputs.map((one) => c.call(ops.inputs.respond, { input: one.id, answer: 'yes' })))
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

test('a sweep at any moment of a busy time finds nothing, over two coordinators', { timeout: 120_000 }, async () => {
  const c = await aCoordinatorOfItsOwn({ SWEEP_RUNS_MS: 3_600_000, SWEEP_MS: 100, OFFER_MS: 5000 })
  const other = await c.another()
  await aWorkflow(c, { slug: 'leaf' })
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'narrow', descriptor: { concurrency: { limit: 3 } } })
  await aWorkflow(c, { slug: 'late', descriptor: { timeout: { wall: '1s', queue: '1s' }, concurrency: { limit: 5 } } })
  await aWorkflow(c, { slug: 'unsteady', descriptor: { retries: { error: { max: 2, delay: '100ms' } } } })
  const stop = new AbortController()
  const first = await anAgent(c, { name: 'first' })
  const second = (await anAgent(c, { name: 'second' })).at(other)
  const work = [
    execute(first, await first.connect(), stop.signal),
    execute(second, await second.connect(), stop.signal),
    answer(c, stop.signal),
  ]
  let looks = 0
  const found: number[] = []
  const sweeping = (async () => {
    while (!stop.signal.aborted) {
      found.push(await sweepRunsOnce(looks++ % 2 === 0 ? c.deps : other.deps))
    }
  })()
  const ids: RunId[] = []
  for (let i = 0; i < RUNS; i++) {
    const run = await aRun(i % 2 === 0 ? c : other, { workflow: WORKFLOWS[i % WORKFLOWS.length]! })
    ids.push(run.id)
    if (i % 7 === 0) void c.call(ops.runs.cancel, { run: ids[Math.floor(i / 2)]! }).catch(() => {})
  }
  const ended = until(
    'all runs end',
    async () => (await c.db`select from runs where finished_at is null`).length === 0,
  ).finally(() => stop.abort())
  const ends = await Promise.allSettled([ended, ...work, sweeping])
  first.close()
  second.close()
  await c.stop()
  for (const one of ends) if (one.status === 'rejected') throw one.reason
  assert.ok(looks > 20, `${looks} looks`)
  assert.equal(
    found.reduce((sum, n) => sum + n, 0),
    0,
  )
})
