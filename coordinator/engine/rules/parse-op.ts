import { hasMoreMarks, MOST_LEVELS, MOST_MARKS_OF_INPUT, nestsDeeper } from '@windlass/shared/json-nesting.ts'
import { JOURNAL_MARKS } from '@windlass/shared/wire/agent.ts'
import type { Ask, EntryIdentity, JournalOp } from '@windlass/shared/wire/journal.ts'

/** A run with more is asked to hand parts of its work to children. */
export const MOST_ENTRIES = 25_000
/** Of a step, as text; 1 MiB of value and what the codec adds. */
const RESULT_CHARS = 1024 * 1024 + 64 * 1024
const PROMPT_CHARS = 10_000
const SCHEMA_CHARS = 16 * 1024
const PARENT_CHARS = 10_000
/** Ours gathers 500 of them. */
const MOST_DELIVERIES = 1000
/** `int` in the database. */
const MOST_INT = 2 ** 31 - 1
const YEAR_MS = 366 * 86_400_000
/** PostgreSQL's calendar goes further than that of JavaScript. */
const LAST_MOMENT = 8.64e15

type Fields = Record<string, unknown>

/**
 * A program's command for its journal, or undefined for what no runtime of ours says. Programs can write in its place, so that all of
 * it is looked at before anything is done.
 */
export function readOp(text: string): JournalOp | undefined {
  if (nestsDeeper(text, MOST_LEVELS) || hasMoreMarks(text, JOURNAL_MARKS)) return undefined
  try {
    const op = JSON.parse(text) as Fields | null
    return op !== null && typeof op === 'object' && fits(op) ? (op as unknown as JournalOp) : undefined
  } catch {
    return undefined
  }
}

function fits(op: Fields): boolean {
  switch (op.op) {
    case 'open':
      return isIdentity(op.entry) && isAsk(op.ask) && op.entry.kind === op.ask.for
    case 'close':
      return isIdentity(op.entry) && isOwn(op.entry) && isState(op.state) && isText(op.result, RESULT_CHARS)
    case 'adopt':
      return isInt(op.n, 1, MOST_INT) && isInt(op.position, 1, MOST_INT)
    case 'drift':
      return isInt(op.n, 1, MOST_INT) && isText(op.args, 1000)
    case 'deliver':
      return Array.isArray(op.list) && op.list.length <= MOST_DELIVERIES && op.list.every(isDelivery)
    default:
      return false
  }
}

const isInt = (value: unknown, from: number, to: number): value is number =>
  Number.isSafeInteger(value) && (value as number) >= from && (value as number) <= to

const isText = (value: unknown, most: number): value is string =>
  typeof value === 'string' && value.length <= most && !value.includes('\0') && value.isWellFormed()

const isState = (value: unknown) => value === 'done' || value === 'failed'

/** What a program completes by itself. Answers and outputs of others it cannot make up. */
const isOwn = (entry: EntryIdentity) => entry.kind === 'step' || entry.kind === 'sleep'

const isDelivery = (value: unknown) =>
  Array.isArray(value) &&
  value.length === 4 &&
  isInt(value[0], 1, MOST_INT) &&
  isInt(value[1], 1, MOST_INT) &&
  isInt(value[2], 0, MOST_INT) &&
  isInt(value[3], 0, 1)

function isIdentity(value: unknown): value is EntryIdentity {
  const entry = value as Partial<EntryIdentity> | null
  return (
    typeof entry === 'object' &&
    entry !== null &&
    isInt(entry.n, 1, MOST_INT) &&
    isInt(entry.position, 1, MOST_INT) &&
    isText(entry.parent, PARENT_CHARS) &&
    ['sleep', 'input', 'child', 'step'].includes(entry.kind as string) &&
    isText(entry.name, 500) &&
    isText(entry.hash, 100) &&
    isInt(entry.occurrence, 1, MOST_INT) &&
    isText(entry.args, 1000) &&
    isText(entry.site, 1000)
  )
}

function isAsk(value: unknown): value is Ask {
  const ask = value as Fields | null
  if (typeof ask !== 'object' || ask === null) return false
  switch (ask.for) {
    case 'sleep':
      return 'until' in ask ? isInt(ask.until, 0, LAST_MOMENT) : isInt(ask.ms, 0, YEAR_MS)
    case 'input':
      return isQuestion(ask)
    case 'child':
      return isCall(ask)
    default:
      return ask.for === 'step'
  }
}

function isQuestion(ask: Fields): boolean {
  const isJson = (value: unknown, most: number) => value === null || (isText(value, most) && isJsonText(value))
  if (!isText(ask.prompt, PROMPT_CHARS) || !isJson(ask.schemaText, SCHEMA_CHARS)) return false
  return (ask.timeoutMs === null || isInt(ask.timeoutMs, 0, YEAR_MS)) && isJson(ask.onTimeoutText, RESULT_CHARS)
}

function isCall(ask: Fields): boolean {
  if (!isText(ask.workflow, 200) || !isText(ask.inputText, 2 * RESULT_CHARS)) return false
  // One with too many lists is not parsed, by anybody: its call is refused.
  if (!hasTooManyLists(ask.inputText) && !isJsonText(ask.inputText)) return false
  if (ask.version !== null && !isInt(ask.version, 1, MOST_INT)) return false
  if (ask.environment !== undefined && ask.environment !== null && !isText(ask.environment, 200)) return false
  if (!isInt(ask.priority, -100, 100)) return false
  return Array.isArray(ask.tags) && ask.tags.length <= 20 && ask.tags.every((tag) => isText(tag, 64) && tag !== '')
}

/** More than a run may be given as its input. */
export const hasTooManyLists = (text: string) => hasMoreMarks(text, MOST_MARKS_OF_INPUT)

function isJsonText(text: string): boolean {
  if (nestsDeeper(text, MOST_LEVELS) || hasTooManyLists(text)) return false
  try {
    JSON.parse(text)
    return true
  } catch {
    return false
  }
}
