import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { MOST_LEVELS, nestsWithin } from '@windlass/shared/json-nesting.ts'
import { EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import type { RunError } from '@windlass/shared/model/run.ts'
import type { Version } from '../workflows/targets.ts'
import type { Invalid } from '../workflows/validate.ts'
import { jsonLine } from './json-line.ts'
import { emit, finish, move, requeue } from './moves.ts'
import type { Moving } from './row.ts'

/** An agent of ours says less. */
const REASON_CHARACTERS = 2000
const SIGNAL_CHARACTERS = 32

/** What an ending means for its run: the rules of contract and descriptor in one place. */
export function settle(
  run: Moving,
  ending: Ending,
  at: number,
  { version, outputBytes }: { version: Version; outputBytes: number },
): void {
  if (run.status === 'cancelling')
    return finish(run, 'cancelled', at, 'forced' in ending ? { forced: ending.forced } : {})
  switch (ending.how) {
    case 'returned':
      return settleReturned(run, ending.outputText, at, { version, outputBytes })
    case 'threw':
      return fail(run, at, threwError(ending.error))
    case 'exited':
      return fail(run, at, exitedError(ending.exitCode))
    case 'timed-out':
      return fail(run, at, timedOutError(ending.timeoutMs))
    case 'killed': {
      const signal = ending.signal.slice(0, SIGNAL_CHARACTERS)
      return crash(run, at, version, { reason: `its process was ended by ${signal}`, signal })
    }
    case 'cancelled':
      // Nobody asked for it here: the agent stopped the program for reasons of its own.
      return crash(run, at, version, { reason: 'its agent stopped it' })
    case 'lost':
      return crash(run, at, version, { reason: ending.reason.slice(0, REASON_CHARACTERS) })
  }
}

function settleReturned(
  run: Moving,
  outputText: string,
  at: number,
  { version, outputBytes }: { version: Version; outputBytes: number },
) {
  const bytes = Buffer.byteLength(outputText)
  if (bytes > outputBytes) return fail(run, at, tooLargeOutput(bytes, outputBytes))
  const line = jsonLine(outputText)
  if (line === undefined) return fail(run, at, invalidOutput({ path: 'output', message: NOT_JSON }))
  const invalid = version.validateOutput(line)
  if (invalid) return fail(run, at, invalidOutput(invalid))
  // An agent that leaves out `start` has executed it all the same.
  begin(run, at)
  run.output = line
  emit(run, { at, channel: 'output', type: 'output', dataText: outputEvent(line) })
  finish(run, 'completed', at)
}

const NOT_JSON = `is no JSON, or nests deeper than ${MOST_LEVELS} levels`

/** Agents look at it first; here it is looked at for those who do not. */
function tooLargeOutput(bytes: number, limitBytes: number): RunError {
  const code: RunErrorCode = 'OUTPUT_TOO_LARGE'
  const message = `${RUN_ERRORS[code]} It has ${bytes} bytes as JSON, and ${limitBytes} are allowed. Return less, or a reference to it.`
  return { code, message, detail: { bytes, limitBytes } }
}

function invalidOutput({ path, message }: Invalid): RunError {
  const code: RunErrorCode = 'OUTPUT_INVALID'
  const advice = 'Return what `run` declares, or correct its return type.'
  return { code, message: `${RUN_ERRORS[code]} ${path}: ${message}. ${advice}`, detail: { path } }
}

/** An output that is larger than an event may be is named only; `/output` has all of it. */
function outputEvent(outputText: string): string {
  const bytes = Buffer.byteLength(outputText)
  if (bytes > EVENT_DATA_BYTES - 64) return JSON.stringify({ truncated: true, bytes })
  return `{"output":${outputText}}`
}

export function fail(run: Moving, at: number, error: RunError): void {
  run.error = error
  finish(run, 'failed', at, { error: { code: error.code, message: error.message } })
}

const PROGRAM_CODE = /^[A-Z][A-Z0-9_]{0,63}$/
/** A stack is for people: what is longer says no more. */
const STACK_CHARACTERS = 8000
const NAME_CHARACTERS = 200
const DETAIL_CHARACTERS = 8000
const DETAIL_LEVELS = 50

/** Said by the program itself, so any of it may be missing or something else. */
function threwError(error: Extract<Ending, { how: 'threw' }>['error']): RunError {
  const name = textOr('Error', error.name).slice(0, NAME_CHARACTERS)
  const message = textOr(name, error.message)
  const code = typeof error.code === 'string' && PROGRAM_CODE.test(error.code) ? error.code : 'PROGRAM_FAILED'
  const stack = typeof error.stack === 'string' ? { stack: error.stack.slice(0, STACK_CHARACTERS) } : {}
  return { code, message: message.slice(0, STACK_CHARACTERS), detail: { ...detailOf(error.detail), name, ...stack } }
}

/** It stands in every list of runs, so it is short; and what is too deep for JSON would fail the commit, time and again. */
function detailOf(detail: unknown): Record<string, unknown> {
  if (typeof detail !== 'object' || detail === null) return {}
  const isSmall = nestsWithin(detail, DETAIL_LEVELS) && JSON.stringify(detail).length <= DETAIL_CHARACTERS
  return isSmall ? { ...detail } : { truncated: true }
}

function textOr(fallback: string, text: unknown): string {
  return typeof text === 'string' && text !== '' ? text : fallback
}

function exitedError(exitCode: number): RunError {
  const code: RunErrorCode = 'PROGRAM_EXITED'
  const message = `${RUN_ERRORS[code]} Its exit code was ${exitCode}. Return a value or throw an error in place of \`process.exit\`.`
  return { code, message, detail: { exitCode } }
}

function timedOutError(timeoutMs: number): RunError {
  const code: RunErrorCode = 'RUN_TIMED_OUT'
  const message = `${RUN_ERRORS[code]} It was stopped after ${timeoutMs} ms. Raise \`timeout\` in workflow.jsonc if it needs longer.`
  return { code, message, detail: { timeoutMs } }
}

/** A crash is nobody's answer: the program starts again from the top, as often as its descriptor allows. */
export function crash(
  run: Moving,
  at: number,
  version: Version,
  why: { reason: string } & Record<string, unknown>,
): void {
  if (run.status === 'cancelling') return finish(run, 'cancelled', at, why)
  if (run.attempt <= version.crashRetries) {
    const lost = run.attempt
    run.attempt++
    const data = { attempt: run.attempt, lostAttempt: lost, ...why }
    emit(run, { at, channel: 'lifecycle', type: 'run.restarted', dataText: JSON.stringify(data) })
    return requeue(run, at, { attempt: run.attempt })
  }
  fail(run, at, {
    code: 'RUN_CRASHED',
    message: `The run was started ${run.attempt} times and lost each time; the last time ${why.reason}.`,
    detail: { attempts: run.attempt, ...why },
  })
}

/** The process has begun. A run that is being cancelled keeps its status. */
export function begin(run: Moving, at: number): void {
  run.started = true
  if (run.status !== 'pending') return
  move(run, 'running', at, { attempt: run.attempt, runner: run.runnerId })
}
