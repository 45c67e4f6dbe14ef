import { fieldPath } from '@windlass/shared/field-path.ts'

/** What was left out of a value, one sentence a place. */
export interface Cut {
  value: unknown
  notes: string[]
}

/** A text is never cut below this: ids, names and sentences stay whole. */
const LEAST_TEXT = 200
/** An object with more entries than any of our own is data of a program, and may lose some. */
const MOST_FIELDS = 50
/** What stands around a text that is cut: quotes, the mark, escapes. */
const MARK = '…'
const MOST_NOTES = 10

type Path = readonly PropertyKey[]

/**
 * A value whose JSON has `limit` characters at most, of the same shape: the longest texts are cut first, all to one
 * length, then lists lose their ends. Undefined when that does not suffice.
 */
export function cutToFit(value: unknown, limit: number): Cut | undefined {
  const lengths = longTexts(value)
  const least = shorten(value, LEAST_TEXT)
  let spare = limit - JSON.stringify(least.value).length
  if (spare < 0) return cutLists(least, limit)
  // Texts share what is left: the short ones are taken whole, and the others get the same of what remains.
  let longest = LEAST_TEXT
  const sorted = lengths.toSorted((a, b) => a - b)
  for (const [at, length] of sorted.entries()) {
    const share = Math.floor(spare / (sorted.length - at))
    const more = Math.min(length - LEAST_TEXT, share)
    longest = LEAST_TEXT + more
    spare -= more
  }
  // Escapes make a text longer than it looks: an end of line counts two characters.
  for (; longest > LEAST_TEXT; longest = Math.floor(longest * 0.8)) {
    const cut = shorten(value, longest)
    if (JSON.stringify(cut.value).length <= limit) return cut
  }
  return least
}

function longTexts(value: unknown): number[] {
  if (typeof value === 'string') return value.length > LEAST_TEXT ? [value.length] : []
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(longTexts) : []
}

/** The value with every text cut to so many characters. */
function shorten(value: unknown, longest: number): Cut {
  const notes: string[] = []
  const walk = (node: unknown, path: Path): unknown => {
    if (typeof node === 'string') {
      if (node.length <= longest) return node
      note(notes, `\`${fieldPath(path)}\` has ${node.length} characters; the first ${longest} are here.`)
      return whole(node, longest) + MARK
    }
    return mapped(node, (inner, key) => walk(inner, [...path, key]))
  }
  return { value: walk(value, []), notes }
}

/** Not in the middle of a pair of surrogates: a half is no character. */
function whole(text: string, length: number): string {
  const last = text.charCodeAt(length - 1)
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? length - 1 : length)
}

function cutLists(cut: Cut, limit: number): Cut | undefined {
  let { value } = cut
  const kept = new Map<string, { path: Path; of: number; are: number }>()
  while (JSON.stringify(value).length > limit) {
    const longest = longestList(value)
    if (!longest) return undefined
    const { path, size } = longest
    const are = Math.ceil(size / 2)
    value = replaced(value, path, are)
    kept.set(fieldPath(path), { path, of: kept.get(fieldPath(path))?.of ?? size, are })
  }
  const notes = [...kept].map(([name, { of, are }]) => `\`${name}\` has ${of} entries; the first ${are} are here.`)
  return { value, notes: [...notes, ...cut.notes].slice(0, MOST_NOTES) }
}

function longestList(value: unknown): { path: Path; size: number } | undefined {
  let longest: { path: Path; size: number; chars: number } | undefined
  const look = (node: unknown, path: Path) => {
    if (typeof node !== 'object' || node === null) return
    const size = Array.isArray(node) ? node.length : Object.keys(node).length
    const chars = JSON.stringify(node).length
    if ((Array.isArray(node) ? size > 1 : size > MOST_FIELDS) && chars > (longest?.chars ?? 0))
      longest = { path, size, chars }
    for (const [key, inner] of Object.entries(node)) look(inner, [...path, Array.isArray(node) ? Number(key) : key])
  }
  look(value, [])
  return longest
}

/** The value with the list at a path cut to its first entries. */
function replaced(value: unknown, [key, ...rest]: Path, are: number): unknown {
  if (key === undefined) {
    if (Array.isArray(value)) return value.slice(0, are)
    return Object.fromEntries(Object.entries(value as object).slice(0, are))
  }
  return mapped(value, (inner, at) => (at === key ? replaced(inner, rest, are) : inner))
}

function mapped(node: unknown, act: (inner: unknown, key: PropertyKey) => unknown): unknown {
  if (Array.isArray(node)) return node.map((inner, at) => act(inner, at))
  if (typeof node !== 'object' || node === null) return node
  return Object.fromEntries(Object.entries(node).map(([key, inner]) => [key, act(inner, key)]))
}

function note(notes: string[], text: string): void {
  if (notes.length < MOST_NOTES) notes.push(text)
}
