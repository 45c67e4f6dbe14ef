import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import type { RunError } from '@windlass/shared/model/run.ts'
import type { Version } from '../workflows/targets.ts'
import type { Invalid } from '../workflows/validate.ts'
import { jsonLine } from './json-line.ts'
import { emit, finish, move, requeue } from './moves.ts'
import type { Moving } from './row.ts'

/** What an ending means for its run: the rules of contract and descriptor in one place. */
export function settle(run: Moving, ending: Ending, at: number, version: Version): void {
  if (run.status === 'cancelling')
    return finish(run, 'cancelled', at, 'forced' in ending ? { forced: ending.forced } : {})
  switch (ending.how) {
    case 'returned':
      return settleReturned(run, ending.outputText, at, version)
    case 'threw':
      return fail(run, at, threwError(ending.error))
    case 'exited':
      return fail(run, at, exitedError(ending.exitCode))
    case 'timed-out':
      return fail(run, at, timedOutError(ending.timeoutMs))
    case 'killed':
      return crash(run, at, version, { reason: `its process was ended by ${ending.signal}`, signal: ending.signal })
    case 'cancelled':
      // Nobody asked for it here: the agent stopped the program for reasons of its own.
      return crash(run, at, version, { reason: 'its agent stopped it' })
    case 'lost':
      return crash(run, at, version, { reason: ending.reason })
  }
}

function settleReturned(run: Moving, outputText: string, at: number, version: Version) {
  const line = jsonLine(outputText)
  if (line === undefined) return fail(run, at, invalidOutput({ path: 'output', message: 'is no JSON' }))
  const invalid = version.validateOutput(line)
  if (invalid) return fail(run, at, invalidOutput(invalid))
  // An agent that leaves out `start` has executed it all the same.
  begin(run, at)
  run.output = line
  emit(run, { at, channel: 'output', type: 'output', dataText: outputEvent(line) })
  finish(run, 'completed', at)
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

/** Said by the program itself, so any of it may be missing or something else. */
function threwError(error: Extract<Ending, { how: 'threw' }>['error']): RunError {
  const name = textOr('Error', error.name)
  const message = textOr(name, error.message)
  const code = typeof error.code === 'string' && PROGRAM_CODE.test(error.code) ? error.code : 'PROGRAM_FAILED'
  const stack = typeof error.stack === 'string' ? { stack: error.stack.slice(0, STACK_CHARACTERS) } : {}
  const detail = typeof error.detail === 'object' ? error.detail : {}
  return { code, message: message.slice(0, STACK_CHARACTERS), detail: { ...detail, name, ...stack } }
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
