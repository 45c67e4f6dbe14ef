import type { AgentFrame, EntryBatch, Placement } from '@windlass/shared/wire/agent.ts'
import { takeBackDeclined } from '../dispatch/claim.ts'
import { tellRefusals, tellWakes } from '../dispatch/wakes.ts'
import { givenAmong } from '../engine/commit/acceptances.ts'
import { cancelsAmong, renewTokens } from '../engine/commit/leases.ts'
import type { RunnerIdentity } from '../actor.ts'
import { createSample } from '../limits/sample.ts'
import { closeByAgent, REVOKED_MESSAGE } from '../runners/intake.ts'
import { createAnswers } from './answers.ts'
import { createLine, type Line } from './backlog.ts'
import { TRY_AGAIN } from './close-codes.ts'
import { createReminder, createRetelling } from './reminder.ts'
import { createSelfNotes } from './self-notes.ts'
import type { Session, SessionNeeds } from './session.ts'
import { byDatabase } from './stamps.ts'

/** What an agent says once it was let in. */
export type Said = Exclude<AgentFrame, { t: 'hello' }>

/** What the frames of one connection share. */
export interface Talk {
  session: Session
  /** Runs work that opens transactions of its own, or has the answers of group commits looked up. */
  oneByOne: Line
  /** Renews tokens, which may take seconds. */
  renewals: Line
  /** Runs heartbeats only: nothing else may hold up a lease. */
  beatByBeat: Line
  answer: ReturnType<typeof createAnswers>
  noteSelf: ReturnType<typeof createSelfNotes>
  retold: ReturnType<typeof createRetelling>
  remind: () => Promise<void>
  failed: (error: unknown) => void
}

export function createTalk(session: Session, failed: (error: unknown) => void): Talk {
  const { deps, runner, tell } = session
  const oneByOne = createLine(() => session.isOver)
  return {
    session,
    oneByOne,
    renewals: createLine(() => session.isOver),
    beatByBeat: createLine(() => session.isOver),
    answer: createAnswers(tell),
    noteSelf: createSelfNotes(session, failed),
    retold: createRetelling(() => oneByOne(() => tellRefusals(deps, runner.id))),
    remind: createReminder(session),
    failed,
  }
}

type Handlers = { [T in Said['t']]: (talk: Talk, frame: Extract<Said, { t: T }>) => Promise<void> }

const HANDLERS: Handlers = {
  accept: ({ session, oneByOne }, frame) => accept(session, frame.runs, oneByOne),

  decline: ({ session: { deps, runner }, oneByOne }, frame) =>
    oneByOne(() => takeBackDeclined(deps, runner, frame.runs)),

  entries: async (talk, frame) => void (await Promise.all(frame.batches.map((batch) => takeEntries(talk, batch)))),

  heartbeat: (talk, frame) => talk.beatByBeat(() => beat(talk, frame)),

  leave: ({ session, oneByOne }, frame) => oneByOne(() => leave(session, frame)),

  renew: ({ session, renewals }, frame) => renewals(() => renew(session, frame.runs)),
}

/** Does what the frame asks. Resolves when it is committed. */
export function obey(talk: Talk, frame: Said): Promise<void> {
  const handle = HANDLERS[frame.t] as (talk: Talk, frame: Said) => Promise<void>
  return handle(talk, frame)
}

async function beat(talk: Talk, frame: Extract<Said, { t: 'heartbeat' }>): Promise<void> {
  const { deps, runner, terms, tell } = talk.session
  const { n, holds, fenceMs } = frame
  const { leaseMs, news } = await terms.renew(fenceMs)
  const { intake, ...orders } = await deps.beats.add({ runnerId: runner.id, orgId: runner.orgId, holds, leaseMs })
  // The word of it was lost on its way.
  if (intake?.state === 'revoked') return deps.sockets.refuse(runner.id, 'REVOKED', REVOKED_MESSAGE)
  const now = Date.now()
  tell({ t: 'beat', n, ...orders, ...(news && { settings: news }), ...(intake && { intake }), now })
  talk.noteSelf(frame)
  if (holds.length > 0) void talk.remind().catch(talk.failed)
}

async function takeEntries({ session, answer, retold }: Talk, batch: EntryBatch): Promise<void> {
  const { deps, runner } = session
  const entries = byDatabase(deps.databaseClock, batch.entries)
  const applied = await deps.entries.add({ ...batch, entries, runnerId: runner.id, orgId: runner.orgId })
  await retold(applied)
  const { run, epoch } = batch
  answer(applied.kind, { run, epoch, seq: applied.kind === 'stale' ? 0 : applied.seq })
}

async function accept(session: Session, runs: Placement[], oneByOne: Line): Promise<void> {
  const leave = session.deps.sockets.accepting.enter(session.runner, runs.length)
  // It says them again on its next connection: those that it was offered, and that are still its own.
  if (!leave) return session.socket.close(TRY_AGAIN, 'more runs were accepted than may wait for their answer')
  try {
    await acceptThese(session, runs, oneByOne)
  } finally {
    leave()
  }
}

async function acceptThese({ deps, runner, terms, tell }: Session, runs: Placement[], oneByOne: Line): Promise<void> {
  const { leaseMs } = await terms.lease()
  const { id: runnerId, orgId } = runner
  const { given, others } = await givenAmong(deps.db, runnerId, runs)
  const taken = await Promise.all(
    given.map(([runId, epoch]) => deps.acceptances.add({ runId, runnerId, orgId, epoch, leaseMs })),
  )
  const late = given.filter((_, i) => taken[i] === 'late')
  tell({ t: 'accepted', runs: given.filter((_, i) => taken[i] !== 'late'), no: [...late, ...others] })
  // An order that overtook the offer found an agent that did not know the run yet.
  const cancelling = given.filter((_, i) => taken[i] === 'cancelling')
  if (cancelling.length > 0)
    await oneByOne(async () => {
      const orders = await cancelsAmong(deps, runnerId, cancelling)
      if (orders.length > 0) tell({ t: 'cancel', runs: orders })
    })
  if (taken.includes('resuming')) await oneByOne(() => tellWakes(deps, runnerId))
}

async function renew(session: Session, runs: Placement[]): Promise<void> {
  const { deps, runner, tell } = session
  const leaveSeat = await deps.sockets.renewals.take(runner.orgId)
  try {
    if (session.isOver) return
    for await (const piece of renewTokens(deps, runner, runs)) {
      if (session.isOver) return
      tell({ t: 'tokens', runs: piece })
    }
  } finally {
    leaveSeat()
  }
}

/** All connections share one sample, so that nobody gets more lines by connecting again. */
const leaves = createSample()

async function leave(session: Session, { reason, deadlineMs }: Extract<Said, { t: 'leave' }>): Promise<void> {
  const { deps, runner, instance } = session
  if (mayLeave(deps, runner, reason)) await closeByAgent(deps, runner, { reason, deadlineMs, instance })
}

function mayLeave({ sockets, log }: SessionNeeds, { id: runnerId }: RunnerIdentity, reason: string): boolean {
  const isObeyed = sockets.leaves.take(runnerId)
  const facts = leaves(runnerId)
  if (facts) log('agent.leaves', { runnerId, reason, isObeyed, ...facts })
  return isObeyed
}
