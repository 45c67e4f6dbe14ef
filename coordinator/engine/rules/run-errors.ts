import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import { MOST_LEVELS, nestsWithin } from '@windlass/shared/json-nesting.ts'
import type { ThrownError } from '@windlass/shared/model/ending.ts'
import type { RunError } from '@windlass/shared/model/run.ts'
import type { VersionTerms } from '../../workflows/terms.ts'
import type { Invalid } from '../../judging/invalid.ts'

export const NOT_JSON = `is no JSON, or nests deeper than ${MOST_LEVELS} levels`

/** Agents look at it first; here it is looked at for those who do not. */
export function tooLargeOutput(bytes: number, limitBytes: number): RunError {
  const code: RunErrorCode = 'OUTPUT_TOO_LARGE'
  const message = `${RUN_ERRORS[code]} It has ${bytes} bytes as JSON, and ${limitBytes} are allowed. Return less, or a reference to it.`
  return { code, message, detail: { bytes, limitBytes } }
}

/** `run`: where the value can be read all the same. */
export function invalidOutput({ path, message }: Invalid, run?: RunId): RunError {
  const code: RunErrorCode = 'OUTPUT_INVALID'
  const advice = 'Return what `run` declares, or correct its return type.'
  const wayTo = run === undefined ? '' : ` The value is not lost: \`windlass runs output ${run} --refused\` shows it.`
  return { code, message: `${RUN_ERRORS[code]} ${path}: ${message}. ${advice}${wayTo}`, detail: { path } }
}

const PROGRAM_CODE = /^[A-Z][A-Z0-9_]{0,63}$/
/**
 * Of message, stack and detail each, as JSON: an error is part of every list of runs. They are for people, and what is
 * longer says no more. A control character has six bytes.
 */
const MOST_BYTES = 8000
const NAME_CHARACTERS = 200
const DETAIL_LEVELS = 50

/** Said by the program itself, so any of it may be missing or something else. */
export function threwError(error: ThrownError): RunError {
  const name = textOr('Error', error.name).slice(0, NAME_CHARACTERS)
  const message = textOr(name, error.message)
  const code = typeof error.code === 'string' && PROGRAM_CODE.test(error.code) ? error.code : 'PROGRAM_FAILED'
  const stack = typeof error.stack === 'string' ? { stack: cut(error.stack) } : {}
  return { code, message: cut(message), detail: { ...detailOf(error.detail), name, ...stack } }
}

/** As much of its beginning as has few enough bytes as JSON. */
function cut(text: string): string {
  // Each character has a byte at least.
  const start = text.slice(0, MOST_BYTES)
  if (jsonBytes(start) <= MOST_BYTES) return start
  let [fits, tooLong] = [0, start.length]
  while (tooLong - fits > 1) {
    const middle = (fits + tooLong) >> 1
    if (jsonBytes(start.slice(0, middle)) <= MOST_BYTES) fits = middle
    else tooLong = middle
  }
  // Half of a pair would be no character.
  return start.slice(0, isHalf(start, fits) ? fits - 1 : fits)
}

/** Without the quotes of a text. */
const jsonBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value)) - (typeof value === 'string' ? 2 : 0)
const isHalf = (text: string, end: number) => /[\ud800-\udbff]/.test(text[end - 1] ?? '')

/** A detail too deep for JSON would fail every commit. */
function detailOf(detail: unknown): Record<string, unknown> {
  if (typeof detail !== 'object' || detail === null) return {}
  const isSmall = nestsWithin(detail, DETAIL_LEVELS) && jsonBytes(detail) <= MOST_BYTES
  return isSmall ? { ...detail } : { truncated: true }
}

function textOr(fallback: string, text: unknown): string {
  return typeof text === 'string' && text !== '' ? text : fallback
}

export function exitedError(exitCode: number): RunError {
  const code: RunErrorCode = 'PROGRAM_EXITED'
  const message = `${RUN_ERRORS[code]} Its exit code was ${exitCode}. Return a value or throw an error in place of \`process.exit\`.`
  return { code, message, detail: { exitCode } }
}

export function timedOutError({ descriptor: { timeoutMs } }: VersionTerms): RunError {
  const code: RunErrorCode = 'RUN_TIMED_OUT'
  const message = `${RUN_ERRORS[code]} It was stopped after ${timeoutMs} ms of execution. Raise \`timeout\` in workflow.jsonc if it needs longer.`
  return { code, message, detail: { timeoutMs } }
}

/** Counted from the run's creation on, waiting included. */
export function overtimeError({ descriptor: { wallTimeoutMs } }: VersionTerms): RunError {
  const code: RunErrorCode = 'RUN_TIMED_OUT'
  const message = `${RUN_ERRORS[code]} It had not ended ${wallTimeoutMs} ms after its creation. Raise \`timeout.wall\` in workflow.jsonc if it needs longer.`
  return { code, message, detail: { wallTimeoutMs } }
}

/** Why a replay cannot go on. `isFailure`: it was a step that failed, and not another way that the program took. */
export function mismatchText({ was, did, isFailure }: { was: string; did: string; isFailure: boolean }): string {
  const [how, wayOut] = isFailure
    ? ['failed where it had got further before', 'Mend the cause of the failure, then restart the run.']
    : ['did something else than before', OTHERWISE]
  return `Continuing the run, the program ${how}: the journal has ${was}, the program did ${did}. ${wayOut}`
}

const OTHERWISE = 'Put what differs from time to time (time, random numbers, reads of other systems) into step().'
