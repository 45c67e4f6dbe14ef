import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import type { Ending, ThrownError } from '@windlass/shared/model/ending.ts'
import { whatIsLost } from '@windlass/shared/model/lost-reasons.ts'
import { isSuspended, type Loss, type RunError } from '@windlass/shared/model/run.ts'
import type { Mismatch, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { Config } from '../../config.ts'
import type { VersionTerms } from '../../workflows/terms.ts'
import type { Output } from './batch.ts'
import { outOfTimeError } from './out-of-time.ts'
import { cutReplay, loseReplay, mayReplayAgain, putReplayOff } from './replays.ts'
import { block, emit, fail, finish, forget, move, requeue, restFor, resume, suspend, takeBack } from './transitions.ts'
import type { Moving } from './run.ts'
import { takeUnbegun } from './unbegun.ts'
import { exitedError, mismatchText, threwError, timedOutError } from './run-errors.ts'

/** An agent of ours says less. */
const REASON_CHARACTERS = 2000
const SIGNAL_CHARACTERS = 32

/** What an agent says, as far as it is kept. No column takes U+0000. */
export const worded = (text: string, most = REASON_CHARACTERS) => text.replaceAll('\0', '').slice(0, most)

interface Settling {
  version: VersionTerms
  output: Output | undefined
  config: Pick<Config, 'maxEventDataBytes'>
  /** No agent has accepted the run. */
  isOffered?: boolean
  /** Agents of its org give back so much that it is not to be given out again at once. */
  isToRest?: boolean
}

/** What an ending means for its run: the rules of contract and descriptor in one place. */
export function settle(run: Moving, ending: Ending, at: number, settling: Settling): void {
  const { version, output, config, isOffered } = settling
  const restMs = settling.isToRest ? PUT_OFF_MS : 0
  const delay = restMs > 0 && { delayMs: restMs }
  if (run.status === 'cancelling')
    return finish(run, 'cancelled', at, 'forced' in ending ? { forced: ending.forced } : {})
  if (run.timedOut) return fail(run, at, outOfTimeError(run, version))
  switch (ending.how) {
    case 'returned':
      return settleReturned(run, at, output, config)
    case 'threw':
      return settleThrown(run, ending.error, at, version)
    case 'exited':
      goOn(run, at)
      return fail(run, at, exitedError(ending.exitCode))
    case 'timed-out':
      return fail(run, at, timedOutError(version))
    case 'killed': {
      const signal = worded(ending.signal, SIGNAL_CHARACTERS)
      const why = ending.reason === undefined ? '' : `: ${worded(ending.reason)}`
      const reason = `its process was ended by ${signal}${why}`
      return lose(run, at, version, { what: 'program', reason, signal, ...delay })
    }
    case 'cancelled':
      // Nobody asked for it here: the agent stopped the program for reasons of its own.
      return lose(run, at, version, { what: 'program', reason: 'its agent stopped it', ...delay })
    case 'lost': {
      const reason = worded(ending.reason)
      // Nothing begins before the agent knows that its acceptance counts.
      run.isUnbegun = isOffered === true && takeBack(run, at, reason, restMs)
      if (run.isUnbegun) return
      return lose(run, at, version, { what: whatIsLost(reason), reason, ...delay })
    }
    case 'unready':
      return putOff(run, at, version, { ...ending, restMs, isOffered: isOffered === true })
    case 'evicted':
      return evict(run, at, version, { reason: worded(ending.reason), restMs })
    case 'blocked':
      return settleBlocked(run, at, version, ending.mismatch)
  }
}

/** The program only waits. One that was led back to where it stood waits as before. */
export function park(run: Moving, waitsFor: SuspendKind, at: number): void {
  if (run.status === 'pending') begin(run, at)
  if (run.status === 'running') return suspend(run, waitsFor, at)
  if (!isSuspended(run.status)) return
  run.place = 'parked'
  run.replays = run.cutReplays = 0
  run.isMoved = true
}

/** The program went on: what it waited for is there, or a timer of its own did it. */
export function goOn(run: Moving, at: number): void {
  if (isSuspended(run.status)) resume(run, at)
}

type Unready = Extract<Ending, { how: 'unready' }> & { restMs: number; isOffered: boolean }

/** Long enough for a person to mend something meanwhile, and short enough for what mends itself. */
const PUT_OFF_MS = 30_000

/**
 * Nothing of it was executed, so it has used up no attempt, however often that happens; its timeouts still count. An
 * agent that is stopped or out of reach says nothing about how it would go elsewhere: there it is not waited for.
 */
function putOff(run: Moving, at: number, version: VersionTerms, { reason: said, blame, ...back }: Unready): void {
  const reason = worded(said)
  if (blame === 'host') run.hostFailure = reason
  const what = whatIsLost(reason)
  const delay = back.restMs > 0 && { delayMs: back.restMs }
  if (what === 'daemon')
    return takeUnbegun(run, at, reason, back) ? undefined : lose(run, at, version, { what, reason, ...delay })
  if (what !== 'program' && takeBack(run, at, reason, back.restMs)) return
  if (run.status === 'pending') return requeue(run, at, { attempt: run.attempt, reason }, PUT_OFF_MS)
  if (run.place !== 'replaying') return lose(run, at, version, { what: 'program', reason, ...delay })
  run.loss = { what: 'program', reason, attempt: run.attempt, isCounted: false }
  putReplayOff(run, at, reason, PUT_OFF_MS)
}

/** Given up by its agent while it waited. One that was still on its way there was lost, whatever the agent says. */
function evict(
  run: Moving,
  at: number,
  version: VersionTerms,
  { reason, restMs }: { reason: string; restMs: number },
): void {
  if (run.place === 'parked' && isSuspended(run.status)) return restFor(run, restMs)
  lose(run, at, version, { what: 'program', reason: `its agent gave it up: ${reason}` })
}

function settleBlocked(run: Moving, at: number, version: VersionTerms, mismatch: Mismatch): void {
  const { expected, received, at: where, mayPass } = mismatch
  // Said by the program itself, so any of it may be something else.
  const cut = (text: unknown, otherwise = '(no text)') => worded(typeof text === 'string' ? text : otherwise)
  const [was, is, site] = [cut(expected), cut(received), cut(where, '')]
  // Only a run that was suspended is replayed.
  if (!isSuspended(run.status)) return fail(run, at, mismatchWhileRunning(was, is))
  const isTriedAgain = mayPass === true && run.place === 'replaying' && mayReplayAgain(run)
  if (isTriedAgain) return lose(run, at, version, { what: 'program', reason: `in the replay ${is}, before ${was}` })
  const message = mismatchText({ was, did: `${is}${site && ` at ${site}`}`, isFailure: mayPass === true })
  block(run, at, { code: 'REPLAY_MISMATCH', message, expected: was, received: is, at: site })
}

function mismatchWhileRunning(expected: string, received: string): RunError {
  const message = `${RUN_ERRORS.INTERNAL} A replay was reported of a run that executes.`
  return { code: 'INTERNAL', message, detail: { expected, received } }
}

/**
 * What a program says about its journal and nobody can read would be missing there: it would wait for what never comes,
 * or do a second time what it was told is kept. Better that its run ends and says so.
 */
export function refuseCommand(run: Moving, at: number, what: string): void {
  const code: RunErrorCode = 'JOURNAL_UNREADABLE'
  if (run.status !== 'cancelling') fail(run, at, { code, message: `${RUN_ERRORS[code]} ${worded(what)}` })
}

const MOST_ENTRIES = 2 ** 31

/** Said by the program itself. */
function ledBy({ ledBy }: ThrownError) {
  const { first, last } = ledBy ?? { first: 0, last: 0 }
  const areNumbers = [first, last].every((n) => Number.isInteger(n) && n > 0 && n < MOST_ENTRIES)
  return areNumbers ? { first, last } : { first: null, last: null }
}

/** Another try, where the descriptor asks for it: its journal keeps what succeeded. */
function settleThrown(run: Moving, thrown: ThrownError, at: number, version: VersionTerms): void {
  const error = threwError(thrown)
  const { max, factor, delayMs, maxDelayMs } = version.descriptor.retries.error
  goOn(run, at)
  if (run.thrown >= max) return fail(run, at, error)
  const waitMs = Math.round(Math.min(maxDelayMs, delayMs * factor ** run.thrown))
  run.thrown++
  run.journal.thrown = { attempt: run.attempt, ...ledBy(thrown) }
  const { code, message } = error
  again(run, at, version, { reason: 'it threw', error: { code, message }, delayMs: waitMs })
}

function settleReturned(run: Moving, at: number, output: Output | undefined, config: Settling['config']): void {
  // Judged before the lock, which takes as long as it takes.
  if (!output) throw new Error(`the output of run ${run.id} was not judged`)
  // An agent that leaves out `start` has executed it all the same.
  begin(run, at)
  goOn(run, at)
  if (output.line !== undefined) run.output = output.line
  if (output.error) return fail(run, at, output.error)
  const { line } = output
  emit(run, { at, channel: 'output', type: 'output', dataText: outputEvent(line, config.maxEventDataBytes) })
  finish(run, 'completed', at)
}

/** An output that is larger than an event may be is named only; `/output` has all of it. */
function outputEvent(outputText: string, limitBytes: number): string {
  const bytes = Buffer.byteLength(outputText)
  if (bytes > limitBytes) return JSON.stringify({ truncated: true, bytes, limitBytes })
  return `{"output":${outputText}}`
}

/** The process of a run is gone: what that means depends on what it was doing. */
export function lose(run: Moving, at: number, version: VersionTerms, why: Why): void {
  if (run.status === 'cancelling') return finish(run, 'cancelled', at, why)
  if (run.timedOut) return fail(run, at, outOfTimeError(run, version))
  run.loss = { what: why.what, reason: why.reason, attempt: run.attempt, isCounted: false }
  if (!isSuspended(run.status)) return crash(run, at, version, why)
  // It only waited, and its journal is committed: losing it costs nothing.
  if (run.place !== 'replaying' || why.what === 'operator') return restFor(run, why.delayMs ?? 0)
  if (why.what === 'program') return loseReplay(run, at, why)
  cutReplay(run, at, why)
}

/** It waits without a process, for nothing that it has asked for. Whoever says that for ever comes to an end. */
export function loseAtRest(run: Moving, at: number, version: VersionTerms): void {
  if (run.timedOut) return fail(run, at, outOfTimeError(run, version))
  const reason = 'it was said to wait, and no sleep, question or call of it was open that could end that'
  run.loss = { what: 'program', reason, attempt: run.attempt, isCounted: false }
  crash(run, at, version, { what: 'program', reason })
}

/** `delayMs`: how long the next attempt waits. */
type Again = { reason: string; delayMs?: number } & Record<string, unknown>
type Why = Again & { what: Loss['what'] }

/** A crash is nobody's answer: the program starts again from the top, as often as its descriptor allows. */
function crash(run: Moving, at: number, version: VersionTerms, why: Why): void {
  // Somebody took it away, knowing that it would begin anew: that says nothing about the program.
  if (why.what === 'operator') return again(run, at, version, why)
  // Where no start was heard, an agent that is back and was killed meanwhile says nothing about the program.
  if (run.loss) run.loss.isCounted = run.status !== 'pending'
  if (isOutOfReach(why.what)) return cutOff(run, at, version, why)
  if (run.crashes < version.crashRetries) {
    run.crashes++
    return again(run, at, version, why)
  }
  fail(run, at, crashedError(run, run.crashes + 1, why))
}

const crashedError = (run: Moving, crashes: number, why: Why): RunError => ({
  code: 'RUN_CRASHED',
  message: `${livesOf(run, crashes)}; the last time ${why.reason}.`,
  detail: { attempts: run.attempt, ...why },
})

function livesOf(run: Moving, crashes: number): string {
  if (run.startedAt !== null || run.started)
    return `The run was started ${counted(run.attempt)} and lost ${counted(crashes)}`
  // Those of which its agents could say that nothing had begun used up no attempt.
  return `The run was never heard to start, and was lost ${counted(Math.max(crashes, run.cutReplays))}`
}

/**
 * Returns whether the loss is a fault of ours or of the network, and none of the program. Of a silent agent nothing is
 * known but that it has ended its programs by now; when it comes back and has been killed meanwhile, the loss is
 * counted as a crash.
 */
const isOutOfReach = (what: Loss['what']) => what === 'network' || what === 'unknown'

function cutOff(run: Moving, at: number, version: VersionTerms, why: Why): void {
  // Losses before this one turned out to be crashes when their agents came back, more of them than there may be.
  if (run.crashes > version.crashRetries) return fail(run, at, crashedError(run, run.crashes, why))
  if (++run.fences <= version.fenceRetries) return again(run, at, version, why)
  fail(run, at, fencedError(run, version.fenceRetries, why))
}

function fencedError(run: Moving, limit: number, why: Why): RunError {
  return {
    code: 'RUN_FENCED',
    message: [
      `The run was cut off ${counted(run.fences)} because its agent was out of reach, and \`retries.fence\` allows`,
      `${limit}; the last time ${why.reason}. See why the machines of its pool lose the coordinator`,
      '(`windlass runs why` lists the losses), or raise `retries.fence` in workflow.jsonc; then retry the run.',
    ].join(' '),
    detail: { attempts: run.attempt, fences: run.fences, limit, ...why },
  }
}

const counted = (times: number) => (times === 1 ? 'once' : `${times} times`)

/** The next attempt, from the top. */
export function again(run: Moving, at: number, version: VersionTerms, why: Again): void {
  const lost = run.attempt
  run.attempt++
  run.activeMs = 0
  if (version.descriptor.retries.onCrash === 'fresh') forget(run)
  else if (!run.journal.thrown) run.lostAttempt = lost
  const data = { attempt: run.attempt, lostAttempt: lost, ...why }
  emit(run, { at, channel: 'lifecycle', type: 'run.restarted', dataText: JSON.stringify(data) })
  requeue(run, at, { attempt: run.attempt }, why.delayMs)
}

/** The process has begun. A run that is being cancelled keeps its status. */
export function begin(run: Moving, at: number, isolation: string | null = null): void {
  run.started = true
  run.isolation = isolation ?? run.isolation
  if (run.status !== 'pending') return
  run.cutReplays = 0
  move(run, 'running', at, { attempt: run.attempt, runner: run.runnerId })
}
