import { assertMove, type FinalStatus, isSuspended, type RunError, type RunStatus } from '@windlass/shared/model/run.ts'
import type { Completion, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type * as events from '../../events/store.ts'
import { MOST_CHARS } from './journal.ts'
import type { Moving } from './run.ts'

/** Adds an event to the log. The cursor is taken under the row's lock, so its order is the order of commits. */
export function emit(
  run: Pick<Moving, 'id' | 'orgId' | 'cursor' | 'events'>,
  event: Pick<events.NewEvent, 'at' | 'channel' | 'type' | 'dataText'>,
): void {
  run.cursor++
  run.events.push({ runId: run.id, orgId: run.orgId, cursor: run.cursor, ...event })
}

function lifecycle(run: Moving, type: string, at: number, data: Record<string, unknown>): void {
  emit(run, { at, channel: 'lifecycle', type, dataText: JSON.stringify(data) })
}

/** Moves the run and says so in its log. */
export function move(run: Moving, to: RunStatus, at: number, data: Record<string, unknown> = {}): void {
  change(run, to)
  lifecycle(run, `run.${to}`, at, data)
}

function change(run: Moving, to: RunStatus): void {
  assertMove(run.status, to)
  run.status = to
  run.isMoved = true
}

/** The process is gone, or is nothing to us any more. */
export function release(run: Moving): void {
  run.place = null
  run.released = true
  run.isMoved = true
}

export function finish(run: Moving, to: FinalStatus, at: number, data: Record<string, unknown> = {}): void {
  move(run, to, at, data)
  release(run)
  run.blocked = null
  // What was to come next does not come.
  run.requeued = null
  run.replayAfterMs = null
  if (run.parentRunId !== null && run.parentEntry !== null) tellParent(run, to)
}

export function fail(run: Moving, at: number, error: RunError): void {
  run.error = error
  finish(run, 'failed', at, { error: { code: error.code, message: error.message } })
}

/** Back into the queue, to be executed from the top. */
export function requeue(run: Moving, at: number, data: Record<string, unknown>, delayMs = 0): void {
  move(run, 'queued', at, data)
  release(run)
  run.requeued = { delayMs }
}

/** Its time has come to be claimed: it was held back until now. */
export function enterNow(run: Moving): void {
  if (run.status === 'queued') run.requeued = { delayMs: 0 }
  run.pokes.add(run.poolId)
  run.isMoved = true
}

const STATUS: Record<SuspendKind, RunStatus> = {
  sleep: 'sleeping',
  input: 'awaiting_input',
  child: 'waiting_for_child',
}

/** Nothing but waits is left of the program: its process stays, its slot is free. */
export function suspend(run: Moving, waitsFor: SuspendKind, at: number): void {
  move(run, STATUS[waitsFor], at, { waitsFor })
  run.place = 'parked'
  run.suspended = true
}

/** `timeout.queue` is for runs that nothing has begun. The timer of others stays until they end, and does nothing. */
export function mayTimeOutInQueue({ attempt, startedAt }: Pick<Moving, 'attempt' | 'startedAt'>): boolean {
  return attempt === 1 && startedAt === null
}

/** The program goes on where it stood. */
export function resume(run: Moving, at: number): void {
  change(run, 'running')
  run.place = 'hot'
  run.replays = run.cutReplays = 0
  run.resumed = true
  lifecycle(run, 'run.resumed', at, { attempt: run.attempt, runner: run.runnerId })
}

/** Its process is gone while it only waited: nothing is lost, and it goes on elsewhere when something is there for it. */
function rest(run: Moving): void {
  if (!isSuspended(run.status)) throw new Error(`a run that is ${run.status} does not rest`)
  release(run)
}

/** The same, and for so long nothing brings it back. */
export function restFor(run: Moving, delayMs: number): void {
  rest(run)
  if (delayMs > 0) run.replayAfterMs = delayMs
}

/**
 * Puts a run that was offered, and of which nothing has begun, back to where it came from. Returns false when it has
 * moved on meanwhile.
 */
export function takeBack(run: Moving, at: number, reason: string, delayMs = 0): boolean {
  if (run.timedOut) return false
  if (run.status === 'pending') requeue(run, at, { attempt: run.attempt, reason }, delayMs)
  else if (run.place === 'replaying' && isSuspended(run.status)) restFor(run, delayMs)
  else return false
  return true
}

/** Whether a run waits without a process, so that a completion has to bring it back into the queue. */
export function mayEnterAsResume(run: Moving): boolean {
  return isSuspended(run.status) && run.place === null && run.blocked === null && run.replayAfterMs === null
}

/** Why a replay cannot go on. The run keeps its status until somebody decides. */
export function block(run: Moving, at: number, blocked: NonNullable<Moving['blocked']>): void {
  release(run)
  run.blocked = blocked
  lifecycle(run, 'run.blocked', at, blocked)
}

/** Something that the run waits for is there. The first completion of an entry counts. */
export function complete(run: Moving, completion: Completion): void {
  // Children of an attempt that was forgotten end later than it.
  if (completion.n <= run.forgottenEntries) return
  const fitting = fits(run, completion) ? completion : tooLongFor(completion)
  run.journal.completed.push(fitting)
  run.journalChars += fitting.result.length
}

/** Results that are not longer are always taken: all entries of a run have 25 MB of such. */
const ALWAYS_CHARS = 1000

function fits({ journalChars }: Moving, { result }: Completion): boolean {
  return result.length <= ALWAYS_CHARS || journalChars + result.length <= MOST_CHARS
}

/**
 * Outputs of children and answers of people come when the run may be anywhere: it is told of them, and decides. With
 * hundreds of 1 MiB each it could never be continued, as nobody can hand such a journal over.
 */
function tooLongFor({ n, result }: Completion): Completion {
  const room = `the results and questions in a journal have ${MOST_CHARS} characters at most`
  const found = `What came back has ${result.length} characters, and does not fit any more: ${room}.`
  const message = `${found} Return less, or a reference to it.`
  const detail = { chars: result.length, limitChars: MOST_CHARS }
  return { n, state: 'failed', result: JSON.stringify({ name: 'Error', code: 'JOURNAL_FULL', message, detail }) }
}

/**
 * The next attempt takes nothing of the journal over, and has all the room of a new one. What attempts before this one
 * had made was forgotten with them.
 */
export function forget(run: Moving): void {
  if (run.entries === run.forgottenEntries) return
  run.journal.forgotten = { after: run.forgottenEntries }
  run.forgottenEntries = run.entries
  run.journalChars = 0
}

function tellParent(run: Moving, to: FinalStatus): void {
  if (!run.parent) throw new Error(`run ${run.id} ends and its parent is not locked`)
  complete(run.parent, completionOf(run, to, run.parentEntry!))
}

/** What the call gets whose child has ended. */
export function completionOf(run: Pick<Moving, 'id' | 'output' | 'error'>, to: FinalStatus, n: number): Completion {
  if (to === 'completed') return { n, state: 'done', result: run.output ?? 'null' }
  const error =
    to === 'cancelled'
      ? { name: 'RunCancelledError', code: 'RUN_CANCELLED', message: `The run ${run.id} was cancelled.` }
      : { name: 'RunFailedError', code: 'RUN_FAILED', message: run.error?.message ?? 'The run failed.' }
  const detail = { runId: run.id, ...(to === 'failed' && run.error && { error: run.error }) }
  return { n, state: 'failed', result: JSON.stringify({ ...error, detail }) }
}
