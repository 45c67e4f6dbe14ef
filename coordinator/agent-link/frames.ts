import { hasMoreMarks } from '@windlass/shared/json-nesting.ts'
import {
  type AgentFrame,
  JOURNAL_CHARS,
  MOST_HOLDS,
  MOST_SLOTS,
  OLDEST_PROTOCOL,
  PROTOCOL,
  protocolOf,
} from '@windlass/shared/wire/agent.ts'
import { isEnding } from './ending.ts'
import { isFacts, isInstance, isIsolation } from './frame-facts.ts'
import { isInt, isText, listOf } from './value-checks.ts'

/** Four times the offers that it can have at once. */
export const MOST_RUNS = 4 * MOST_SLOTS
/** The most placements and facts, at some 46 characters each. Entries may have what the socket takes. */
const MOST_CHARS_OF_OTHERS = 1024 * 1024
/** Ours cuts its frames at 512 Ki characters, and a batch has 97 at least. */
const MOST_BATCHES = 5500
/** Of all batches of a frame, which one transaction may have to write. Ours has 24 characters for an entry at least. */
const MOST_ENTRIES = 50_000
/** To parse more of these would stop everybody else for seconds. Ours has half a million characters in a frame. */
const MOST_MARKS = { opened: 250_000, names: 100_000, commas: 300_000, plain: MOST_CHARS_OF_OTHERS }
/** Ten years: no run takes so long, and the sum of as many as come fits into its column. */
const MOST_COMPUTE_MS = 3650 * 86_400_000
/** Epochs and the numbers of entries are `int` in the database. */
const MOST_INT = 2 ** 31 - 1
/** The last moment that a `Date` can name. */
const LAST_MOMENT = 8.64e15

/** What has not the form of an id may hold what no column takes, such as U+0000. */
const isRunId = (value: unknown): value is string => typeof value === 'string' && /^run_[0-9a-z]{26}$/.test(value)
const isPlacement = (value: unknown) => Array.isArray(value) && isRunId(value[0]) && isInt(value[1], 0, MOST_INT)
const isRuns = listOf(MOST_RUNS, isPlacement)
const isHolds = listOf(MOST_HOLDS, isPlacement)

/**
 * What each frame must have. All of it is looked at here, before anything is done: what could not be stored would fail
 * in the transaction, be sent again with the next connection, and fail there again.
 */
const FITS = new Map<unknown, (frame: Record<string, unknown>) => boolean>([
  ['hello', isHello],
  ['accept', (frame) => isRuns(frame.runs)],
  ['decline', (frame) => isRuns(frame.runs)],
  ['entries', (frame) => isBatches(frame.batches)],
  ['heartbeat', isHeartbeat],
  [
    'leave',
    (frame) => isText(frame.reason, 1000) && !frame.reason.includes('\0') && isInt(frame.deadlineMs, 0, MOST_INT),
  ],
  ['renew', (frame) => isHolds(frame.runs)],
])

/** Whether a text is to be entries, before it is parsed. */
export const saysEntries = (text: string): boolean => text.startsWith('{"t":"entries"')

/** The frame, or undefined for what no agent of ours sends. What is too long for its kind is not even parsed. */
export function readFrame(text: string): AgentFrame | undefined {
  const isEntries = saysEntries(text)
  if (text.length > MOST_CHARS_OF_OTHERS && !isEntries) return undefined
  if (hasMoreMarks(text, MOST_MARKS)) return undefined
  try {
    const frame = JSON.parse(text) as Record<string, unknown> | null
    // The last of two keys counts.
    if ((frame?.t === 'entries') !== isEntries) return undefined
    return frame && FITS.get(frame.t)?.(frame) ? (frame as unknown as AgentFrame) : undefined
  } catch {
    return undefined
  }
}

/** Of another protocol only its name is known, a number of a preview's; the agent is told which one is spoken here. */
function isHello(frame: Record<string, unknown>): boolean {
  if (isInt(frame.protocol, 0)) return true
  const protocol = protocolOf(frame.protocol)
  if (protocol === undefined) return false
  if (protocol < OLDEST_PROTOCOL || protocol > PROTOCOL) return true
  if (!isText(frame.version, 64) || frame.version.includes('\0')) return false
  return (
    isInt(frame.slots, 1, MOST_SLOTS) &&
    isHolds(frame.holds) &&
    isInstance(frame.instance) &&
    isBoot(frame) &&
    isConnection(frame) &&
    saysOfItself(frame)
  )
}

/** A century. */
const MOST_BOOT_AGE_MS = 100 * 366 * 86_400_000

const isBoot = ({ bootAgeMs }: Record<string, unknown>) =>
  bootAgeMs === undefined || isInt(bootAgeMs, 0, MOST_BOOT_AGE_MS)

const isConnection = ({ connection }: Record<string, unknown>) =>
  connection === undefined || isInt(connection, 1, MOST_INT)

function isHeartbeat(frame: Record<string, unknown>): boolean {
  if (!isInt(frame.n, 0) || !isHolds(frame.holds)) return false
  return (frame.slots === undefined || isInt(frame.slots, 1, MOST_SLOTS)) && saysOfItself(frame)
}

function saysOfItself({ facts, fenceMs }: Record<string, unknown>): boolean {
  return isFacts(facts) && (fenceMs === undefined || isInt(fenceMs, 1, MOST_INT))
}

function isBatches(value: unknown): boolean {
  return isListOfBatches(value) && entriesIn(value as readonly { entries: unknown[] }[]) <= MOST_ENTRIES
}

function entriesIn(batches: readonly { entries: unknown[] }[]): number {
  return batches.reduce((sum, { entries }) => sum + entries.length, 0)
}

const isListOfBatches = listOf(MOST_BATCHES, (value) => {
  const batch = value as Record<string, unknown> | null
  if (!isRunId(batch?.run) || !isInt(batch.epoch, 0, MOST_INT) || !isInt(batch.first, 1)) return false
  const { entries } = batch
  if (!Array.isArray(entries) || entries.length === 0 || batch.first + entries.length > MOST_INT) return false
  return entries.every(isEntry)
})

function isEntry(entry: unknown): boolean {
  if (!Array.isArray(entry) || !isInt(entry[1], 0, LAST_MOMENT)) return false
  if (entry[0] === 'e') return isText(entry[2]) && isText(entry[3])
  if (entry[0] === 'j') return isText(entry[2], JOURNAL_CHARS)
  if (entry[0] === 'park') return isSuspendKind(entry[2]) && isComputeMs(entry[3])
  if (entry[0] === 'end') return isEnding(entry[2]) && isComputeMs(entry[3])
  // Why it goes on may be a word of a newer agent.
  return (entry[0] === 'start' && isIsolation(entry[2])) || entry[0] === 'resume'
}

const isComputeMs = (value: unknown) => typeof value === 'number' && isInt(Math.round(value), 0, MOST_COMPUTE_MS)
const isSuspendKind = (value: unknown) => value === 'sleep' || value === 'input' || value === 'child'
