import { MOST_LEVELS, nestsWithin } from '@windlass/shared/json-nesting.ts'
import { AROUND_EVENT_BYTES } from '@windlass/shared/model/event.ts'
import type { ThrownError } from '@windlass/shared/model/ending.ts'
import type { Mismatch, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { IdleReport, LogData, ParkReport, RejoinReport } from '@windlass/shared/wire/program.ts'
import { parseable } from './frame-limits.ts'
import { BrokenFrame, type Frame } from './frames.ts'

// What a program says about itself. The runtime writes these, but a program can write in its place: what is passed on has
// the right shape at least.

// The runtime sends far less. What is larger or deeper would never get through to the coordinator, and be sent for ever.
const TEXT_CHARACTERS = 32 * 1024
const DETAIL_BYTES = 64 * 1024
const MISMATCH_CHARACTERS = 2_000
// Of a phase, in code units, each of which takes six bytes at most.
const NAME_CHARACTERS = 200
// They go into the agent's log.
const MOST_STRAYS = 20
const STRAY_CHARACTERS = 100

export function parsePayload(frame: Frame): object {
  try {
    const value: unknown = JSON.parse(frame.payload.toString())
    if (typeof value === 'object' && value !== null) return value
  } catch (error) {
    throw new BrokenFrame(`a ${frame.name} that is not JSON: ${String(error)}`)
  }
  throw new BrokenFrame(`a ${frame.name} that is no object`)
}

/** What nests too deep can be read, but not be written again. */
const TOO_DEEP: LogData = { text: `Left out: the data of this event nests deeper than ${MOST_LEVELS} levels.` }

function dataIn(frame: Frame): object {
  const data = parsePayload(frame)
  return nestsWithin(data, MOST_LEVELS) ? data : TOO_DEEP
}

/** The runtime sends none that is too large; but what stands in place of a secret may be longer than it. */
export function phaseIn(frame: Frame, limitBytes: number): object {
  const data: { name?: unknown } = dataIn(frame)
  const bytes = frame.payload.length
  if (bytes <= limitBytes + AROUND_EVENT_BYTES) return data
  return { name: textOr(data.name, '').slice(0, NAME_CHARACTERS), data: { truncated: true, bytes, limitBytes } }
}

/** Its text may still be too long: that is split. */
export function logIn(frame: Frame, limitBytes: number): Partial<LogData> {
  const data: Partial<LogData> = dataIn(frame)
  const bytes = frame.payload.length
  if (data.fields === undefined || bytes <= limitBytes) return data
  return { ...data, fields: { omitted: 'the fields are too large', bytes, limitBytes } }
}

export function thrownIn(frame: Frame): ThrownError {
  const { name, message, stack, code, detail, ledBy }: Partial<ThrownError> = parsePayload(frame)
  const error: ThrownError = { name: textOr(name, 'Error'), message: textOr(message, 'The program failed.') }
  if (typeof stack === 'string') error.stack = stack.slice(0, TEXT_CHARACTERS)
  if (typeof code === 'string') error.code = code.slice(0, TEXT_CHARACTERS)
  const isSmall = frame.payload.length <= DETAIL_BYTES && nestsWithin(detail, MOST_LEVELS)
  if (typeof detail === 'object' && detail !== null) error.detail = isSmall ? detail : { truncated: true }
  const { first, last } = ledBy ?? {}
  if (typeof first === 'number' && typeof last === 'number') error.ledBy = { first, last }
  return error
}

/** A runtime of an older agent tells of no strays. */
export function idleIn(frame: Frame): IdleReport {
  const { leftovers, strays = [] }: Partial<IdleReport> = parsePayload(frame)
  const isReadable = Array.isArray(leftovers) && Array.isArray(strays)
  if (!isReadable) return { leftovers: ['an unreadable report'], strays: [] }
  return { leftovers, strays: strays.slice(0, MOST_STRAYS).map((stray) => shortOf(stray).slice(0, STRAY_CHARACTERS)) }
}

/** Passed on as the text that came; whether it makes sense is for the coordinator to judge. */
export function journalIn(frame: Frame): string {
  if (Array.isArray(parsePayload(frame))) throw new BrokenFrame('a journal that is no object')
  return frame.payload.toString()
}

const KINDS: readonly string[] = ['sleep', 'input', 'child'] satisfies SuspendKind[]

export function parkIn(frame: Frame): ParkReport {
  const { waitsFor, heard }: Partial<ParkReport> = parsePayload(frame)
  if (waitsFor !== undefined && KINDS.includes(waitsFor) && typeof heard === 'number') return { waitsFor, heard }
  throw new BrokenFrame(`a park of ${JSON.stringify(frame.payload.toString().slice(0, 50))}`)
}

export function rejoinIn(frame: Frame): RejoinReport {
  const { first, next, heard, variables, handsOver }: Partial<RejoinReport> = parsePayload(parseable(frame))
  const areCounts = [first, next, heard].every((count) => Number.isSafeInteger(count))
  const known = { first, next, heard, variables, handsOver: handsOver === true }
  if (areCounts && areTexts(variables)) return known as RejoinReport
  throw new BrokenFrame('a rejoin that does not say where it stands')
}

function areTexts(values: unknown): boolean {
  if (typeof values !== 'object' || values === null) return false
  return Object.values(values).every((value) => typeof value === 'string')
}

/** Nothing is compared with a journal but in a replay: at any other time no runtime of ours says so. */
export function mismatchIn(frame: Frame, { isReplaying }: { isReplaying: boolean }): Mismatch {
  if (!isReplaying) throw new BrokenFrame('a blocked, which it does not say at this time')
  const { expected, received, at, mayPass }: Partial<Mismatch> = parsePayload(frame)
  const known = { expected: shortOf(expected), received: shortOf(received), at: shortOf(at) }
  return mayPass === true ? { ...known, mayPass } : known
}

const textOr = (value: unknown, otherwise: string) =>
  typeof value === 'string' ? value.slice(0, TEXT_CHARACTERS) : otherwise

const shortOf = (value: unknown) => (typeof value === 'string' ? value.slice(0, MISMATCH_CHARACTERS) : '')
