import { CUT_MARK } from '@windlass/shared/cut-mark.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { hasMoreMarks, type Marks } from '@windlass/shared/json-nesting.ts'

/** What was left out of a value, one sentence a place. */
export interface Cut {
  value: unknown
  notes: string[]
}

/** Characters of JSON in one answer: some 5,000 tokens. */
export const MOST_CHARS = 20_000

/**
 * A value with more is not cut by its shape, for which it is parsed, printed and walked several times: 110,000 names in
 * 1 MiB take 0.4 s, in which nobody else is answered.
 */
const MARKS: Marks = { opened: 25_000, names: 25_000, commas: 100_000 }

export const isTooManifold = (json: string) => json.length > MOST_CHARS && hasMoreMarks(json, MARKS)

/** The beginning of a text that is not in memory as a whole: as much of it as a cut may leave. */
export class Excerpt {
  readonly beginning: string
  /** Of the whole text. */
  readonly length: number
  constructor(beginning: string, length: number) {
    this.beginning = beginning
    this.length = length
  }

  slice(from: number, to: number): string {
    return this.beginning.slice(from, to)
  }

  charCodeAt(at: number): number {
    return this.beginning.charCodeAt(at)
  }

  toJSON(): string {
    return this.beginning
  }
}

/** A text is never cut below this: ids, names and sentences stay whole. */
const LEAST_TEXT = 200
/** Number of entries that lists are cut to at first. It is halved until the value fits. */
const MOST_ENTRIES = 4096
/** An object with more entries than any of our own is data of a program, and may lose some. */
const MOST_FIELDS = 50
/** Number of entries that such an object keeps at least. */
const LEAST_FIELDS = 25
const MOST_NOTES = 10
/** Characters of a path in a note. Ten notes then fit into the room that the answer has for them. */
const MOST_PATH = 100

/** How many characters a text keeps, and how many entries a list. */
interface Bounds {
  text: number
  entries: number
}

/** The way up from a node to the root. Only the few nodes that a note names get their paths written out. */
interface Trail {
  above: Trail | undefined
  key: PropertyKey
}

/**
 * A value whose JSON has `limit` characters at most, of the same shape: the longest texts are cut first, all to one
 * length, then lists lose their ends, all to one number of entries. Undefined when that does not suffice.
 */
export function cutToFit(value: unknown, limit: number): Cut | undefined {
  const least = cutTo(value, { text: LEAST_TEXT, entries: Infinity }, limit)
  if (!least) return cutLists(value, limit)
  // Texts share what is left: the short ones are taken whole, and the others get the same of what remains.
  let spare = limit - JSON.stringify(least.value).length
  let longest = LEAST_TEXT
  const sorted = longTexts(value).toSorted((a, b) => a - b)
  for (const [at, length] of sorted.entries()) {
    const share = Math.floor(spare / (sorted.length - at))
    const more = Math.min(length - LEAST_TEXT, share)
    longest = LEAST_TEXT + more
    spare -= more
  }
  // Escapes make a text longer than it looks: an end of line counts two characters.
  for (; longest > LEAST_TEXT; longest = Math.floor(longest * 0.8)) {
    const cut = cutTo(value, { text: longest, entries: Infinity }, limit)
    if (cut) return cut
  }
  return least
}

function longTexts(value: unknown): number[] {
  if (isText(value)) return value.length > LEAST_TEXT ? [value.length] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(longTexts) : []
}

function isText(value: unknown): value is string | Excerpt {
  return typeof value === 'string' || value instanceof Excerpt
}

function cutLists(value: unknown, limit: number): Cut | undefined {
  for (let entries = MOST_ENTRIES; entries >= 1; entries /= 2) {
    const cut = cutTo(value, { text: LEAST_TEXT, entries }, limit)
    if (cut) return cut
  }
  return undefined
}

/**
 * The value with every text and every list cut, or undefined when its JSON then has more than `limit` characters.
 * A node has one character at least, so the walk gives up after `limit` nodes, however large the value is.
 */
function cutTo(value: unknown, { text, entries }: Bounds, limit: number): Cut | undefined {
  const lists = createNotes()
  const texts = createNotes()
  let room = limit
  const walk = (node: unknown, trail?: Trail): unknown => {
    room--
    if (isText(node)) {
      const shown = node.length > text ? whole(node, text) + CUT_MARK : node.slice(0, text)
      if (node.length > text)
        texts.add(trail, (name) => `${name} has ${node.length} characters; the first ${text} are here.`)
      room -= shown.length
      return shown
    }
    if (typeof node !== 'object' || node === null) return node
    const keys = Array.isArray(node) ? undefined : keysOf(node)
    const size = keys?.length ?? (node as unknown[]).length
    const shown = keys ? fieldsShown(size, entries) : Math.min(size, entries)
    if (shown < size) lists.add(trail, (name) => `${name} has ${size} entries; the first ${shown} are here.`)
    const inner: [key: string, value: unknown][] = []
    for (let at = 0; at < shown && room >= 0; at++) {
      const key = keys?.[at] ?? at
      if (keys) room -= keys[at]!.length
      inner.push([String(key), walk((node as Record<PropertyKey, unknown>)[key], { above: trail, key })])
    }
    return keys ? Object.fromEntries(inner) : inner.map(([, entry]) => entry)
  }
  const cut = walk(value)
  if (room < 0 || JSON.stringify(cut).length > limit) return undefined
  return { value: cut, notes: notesOf(lists, texts) }
}

const keysOfLarge = new WeakMap<object, string[]>()

/** A value is walked up to 14 times; the names of a large object, 100,000 of them in 10 ms, are listed once. */
function keysOf(node: object): string[] {
  const known = keysOfLarge.get(node)
  if (known) return known
  const keys = Object.keys(node)
  if (keys.length > MOST_ENTRIES) keysOfLarge.set(node, keys)
  return keys
}

function fieldsShown(size: number, entries: number): number {
  return size > MOST_FIELDS ? Math.min(size, Math.max(entries, LEAST_FIELDS)) : size
}

/** Not in the middle of a pair of surrogates: a half is no character. */
function whole(text: Pick<string, 'charCodeAt' | 'slice'>, length: number): string {
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)
}

interface Notes {
  first: string[]
  count: number
  add(trail: Trail | undefined, sentence: (name: string) => string): void
}

/** Counts all cuts, and writes sentences for the first of them only. */
function createNotes(): Notes {
  const notes: Notes = {
    first: [],
    count: 0,
    add(trail, sentence) {
      if (notes.count++ < MOST_NOTES) notes.first.push(sentence(`\`${nameOf(trail)}\``))
    },
  }
  return notes
}

function notesOf(lists: Notes, texts: Notes): string[] {
  const first = [...lists.first, ...texts.first].slice(0, MOST_NOTES)
  const more = lists.count + texts.count - first.length
  return more > 0 ? [...first, `${more} more lists and texts are cut.`] : first
}

function nameOf(trail: Trail | undefined): string {
  const path: PropertyKey[] = []
  for (let at = trail; at; at = at.above) path.push(at.key)
  const name = fieldPath(path.toReversed())
  return name.length > MOST_PATH ? `${whole(name, MOST_PATH)}…` : name
}
