// A claim gives runs away as the rules allow it, whatever lies in the queue and whoever moves runs meanwhile.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import type { RunId, RunnerId } from '@windlass/shared/ids.ts'
import { isFinal, mayMove, type RunStatus } from '@windlass/shared/model/run.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import { cancelThese } from '../../../engine/commit/cancel.ts'
import { commitClaims } from '../../../engine/commit/claims.ts'
import { fireDue } from '../../../engine/commit/fire.ts'
import type { Claimed, ClaimCandidate } from '../../../engine/store/claim.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../../_kit/coordinator.ts'
import { dropInvariants } from '../../_kit/database.ts'
import { playCases } from '../../_kit/play-cases.ts'
import {
  aPool,
  isFree,
  isResume,
  mayTake,
  MEAN_QUEUE,
  type Pool,
  type QueueCase,
  queueCases,
  type Queued,
  candidatesOf,
} from '../../_kit/random-queue.ts'
import { type Known, openKnown, type Owner } from '../../_kit/random-runs.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let version: Owner['version']
let known: (ids: readonly RunId[]) => Promise<Known[]>

before(async () => {
  c = await aCoordinatorOfItsOwn()
  const { id } = await aWorkflow(c)
  ;[version] = await c.db<NonNullable<Owner['version']>[]>`
    select workflow_id, id as version_id from workflow_versions where workflow_id = ${id}`
  // Journals are random, too.
  await dropInvariants(c.db)
  known = await openKnown(c.db)
})
after(() => c.stop())

const OFFER_MS = 60_000
/** Asserts that nobody gets more than he asked for, nor what he cannot execute. */
function assertFits(
  asked: QueueCase,
  pool: Pool,
  candidates: readonly ClaimCandidate[],
  claimed: readonly Claimed[],
): void {
  const taken = new Map<RunnerId, number>()
  for (const { runId, runnerId } of claimed) {
    const ask = asked.runs[pool.runs.indexOf(runId)]!
    const runner = asked.runners[pool.runners.indexOf(runnerId)]!
    assert.ok(mayTake(asked, runner), `${JSON.stringify(runner)} is given nothing`)
    assert.ok(
      ask.labels.every((label) => runner.labels.includes(label)),
      'a runner has the labels of its runs',
    )
    taken.set(runnerId, (taken.get(runnerId) ?? 0) + ask.slots)
  }
  for (const [runnerId, slots] of taken) {
    const candidate = candidates.find((one) => one.runnerId === runnerId)!
    assert.ok(slots <= candidate.slots, `${slots} slots are taken of ${candidate.slots}`)
  }
}

type Row = Record<string, unknown>

function assertGiven(ask: Queued, before: Known, now: Known, claimed: Claimed): void {
  const [was, is] = [before['runs']![0]!, now['runs']![0]!]
  assert.ok(isFree(ask), `${JSON.stringify(ask)} is given to nobody`)
  const resumes = isResume(ask)
  assert.deepEqual(
    [claimed.isResume, claimed.epoch, claimed.attempt],
    [resumes, Number(was['epoch']) + 1, was['attempt']],
  )
  const { runnerId, epoch } = claimed
  assert.deepEqual(
    [is['runnerId'], is['epoch'], is['place'], is['seq']],
    [runnerId, epoch, resumes ? 'replaying' : 'hot', 0],
  )
  assert.deepEqual(
    now['placements']!.map((row) => [row['runnerId'], row['epoch'], row['slots'], row['acceptedAt']]),
    [[runnerId, epoch, ask.slots, false]],
  )
  assert.equal(now['run_queue'], undefined)
  const event = newEvents(before, now)[0]
  const offered = { runner: runnerId, attempt: claimed.attempt, epoch }
  if (!resumes) assert.deepEqual([event?.['type'], JSON.parse(String(event?.['data']))], ['run.pending', offered])
}

const newEvents = (before: Known, now: Known): Row[] =>
  (now['run_events'] ?? []).slice((before['run_events'] ?? []).length)

function assertLeft(ask: Queued, before: Known, now: Known): void {
  const { run_queue: waited, ...was } = before
  const { run_queue: waits, ...is } = now
  if (ask.race === null) assert.deepEqual(is, was)
  // What is in the queue and cannot be given away goes when it is found there.
  const mayWait = isFree(ask) && !isFinal(String(is['runs']![0]!['status']) as RunStatus)
  if (mayWait || waits) assert.deepEqual(waits, waited)
  assert.equal(is['runs']![0]!['epoch'], was['runs']![0]!['epoch'])
  assert.deepEqual(is['placements'] ?? [], (was['placements'] ?? []).slice(0, is['placements']?.length ?? 0))
}

/** Each move in the log is one of the table, and the last one is where the run is. */
function assertMoves(before: Known, now: Known): void {
  let status = String(before['runs']![0]!['status']) as RunStatus
  let cursor = Number(before['runs']![0]!['cursor'])
  for (const event of newEvents(before, now)) {
    const to = String(event['type']).replace(/^run\./, '') as RunStatus
    assert.ok(mayMove(status, to), `${status} → ${to}`)
    status = to
    assert.equal(event['cursor'], ++cursor)
  }
  assert.deepEqual([now['runs']![0]!['status'], now['runs']![0]!['cursor']], [status, cursor])
}

interface Seen {
  before: Known[]
  now: Known[]
}

function assertSound(asked: QueueCase, pool: Pool, claimed: readonly Claimed[], { before, now }: Seen): void {
  const given = new Map(claimed.map((one) => [one.runId, one]))
  assert.equal(given.size, claimed.length, 'nothing is given away twice')
  for (const [i, ask] of asked.runs.entries()) {
    const one = given.get(pool.runs[i]!)
    if (one) assertGiven(ask, before[i]!, now[i]!, one)
    else assertLeft(ask, before[i]!, now[i]!)
    assertMoves(before[i]!, now[i]!)
  }
}

/** A case is a run in the queue when runs are given away. */
const played = (group: fc.Arbitrary<QueueCase>, test: number, storm: number) => ({
  group,
  groups: amount({ test: test / MEAN_QUEUE, storm: storm / MEAN_QUEUE }),
  size: ({ runs }: QueueCase) => runs.length,
})

/** Runs that are first in the queue of a pool where any run fits any runner, as many as there are seats. */
function firstOf(asked: QueueCase, pool: Pool): RunId[] {
  const seats = asked.runners.filter((runner) => mayTake(asked, runner)).map(({ free }) => free[0]!.share)
  const most = seats.reduce((sum, share) => sum + share, 0)
  const line = asked.runs
    .map((ask, i) => ({ ask, id: pool.runs[i]! }))
    .sort((a, b) => Number(isResume(b.ask)) - Number(isResume(a.ask)) || b.ask.priority - a.ask.priority)
  return line
    .slice(0, most)
    .filter(({ ask }) => isFree(ask))
    .map(({ id }) => id)
}

test('runs of one slot are given out in their order, as the rules allow', async (t) => {
  await playCases(t, played(queueCases(true, false), 700, 38_000), async (asked) => {
    const pool = await aPool(c.db, asked, version)
    const before = await known(pool.runs)
    const candidates = candidatesOf(asked, pool, 0)
    const { claimed } = await commitClaims(c.db, pool.poolId, { candidates, offerMs: OFFER_MS })
    assertFits(asked, pool, candidates, claimed)
    assert.deepEqual(claimed.map(({ runId }) => runId).sort(), firstOf(asked, pool).sort())
    assertSound(asked, pool, claimed, { before, now: await known(pool.runs) })
  })
})

test('runs go to runners that were chosen for them, as the rules allow', async (t) => {
  await playCases(t, played(queueCases(false, false), 600, 32_000), async (asked) => {
    const pool = await aPool(c.db, asked, version)
    const before = await known(pool.runs)
    const candidates = candidatesOf(asked, pool, 0)
    const { claimed } = await commitClaims(c.db, pool.poolId, { candidates, offerMs: OFFER_MS })
    assertFits(asked, pool, candidates, claimed)
    assertSound(asked, pool, claimed, { before, now: await known(pool.runs) })
  })
})

const raced = fc.boolean().chain((isPlain) => queueCases(isPlain, true))

test('claims at once, of runs that are cancelled and run out of time, give each away once', async (t) => {
  await playCases(t, played(raced, 700, 38_000), async (asked) => {
    const pool = await aPool(c.db, asked, version)
    const raced = (race: Queued['race']) => pool.runs.filter((_, i) => asked.runs[i]!.race === race)
    const timers = raced('time out').map((id) => ({ id }))
    await c.db`
      insert into timers (run_id, org_id, kind, due_at)
      select id, ${c.orgId}, 'wall-timeout', now()
      from json_to_recordset(${JSON.stringify(timers)}::text::json) as t (id text)`
    const before = (await known(pool.runs)).map(({ timers: _, ...one }) => one)
    const claims = [0, 1, 2].map(async (claim) => {
      const candidates = candidatesOf(asked, pool, claim)
      const { claimed } = await commitClaims(c.db, pool.poolId, { candidates, offerMs: OFFER_MS })
      assertFits(asked, pool, candidates, claimed)
      return claimed
    })
    const moves = [cancelThese(c.deps, raced('cancel'), { by: 'test', reason: '' }), fireDue(c.deps)]
    const claimed = (await Promise.all(claims)).flat()
    await Promise.all(moves)
    await c.deps.timersBehind.ends.idle()
    assertSound(asked, pool, claimed, { before, now: await known(pool.runs) })
  })
})
