import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { type Effort, FIELD, LOOK, type Pieces } from './effort.ts'
import { globOf, matchesGlob } from './patterns.ts'

type Filter = Descriptor['connections'][number]['filter']
type Wanted = Filter[string]
type Scalar = string | number | boolean | null

/** The first field of a filter that the payload does not fit; undefined where it fits all. */
export function* refusedBy(filter: Filter, payload: unknown, effort: Effort): Pieces<string | undefined> {
  for (const path of Object.keys(filter))
    if (!(yield* fits(payload, { path, wanted: filter[path]! }, effort))) return path
  return undefined
}

function* fits(payload: unknown, { path, wanted }: { path: string; wanted: Wanted }, effort: Effort): Pieces<boolean> {
  effort.spend(FIELD + path.length)
  const names = path.replaceAll('[]', '.[]').split('.').filter(Boolean)
  const found = yield* valuesAt(payload, names, effort)
  // A field that is missing equals nothing, so it fits every `not`.
  return typeof wanted === 'object' && wanted !== null && 'not' in wanted
    ? !(yield* isOneOf(found, wanted.not, effort))
    : yield* isOneOf(found, wanted, effort)
}

/** Of a list so many elements are looked at: those who post choose how many there are. */
const MOST_ELEMENTS = 1000

/** Elements of a list that are still to be looked at, each on the way from `at` on. */
interface Elements {
  list: readonly unknown[]
  next: number
  at: number
}

/**
 * What stands there: several values where the path goes through all elements of a list. Stops when enough is found:
 * what would be thrown away is not paid for.
 */
function* valuesAt(payload: unknown, names: readonly string[], effort: Effort): Pieces<unknown[]> {
  const found: unknown[] = []
  const open: Elements[] = [{ list: [payload], next: 0, at: 0 }]
  for (let last = open.at(-1); last && found.length < MOST_ELEMENTS; last = open.at(-1)) {
    if (effort.endsPiece()) yield
    if (last.next === Math.min(last.list.length, MOST_ELEMENTS)) {
      open.pop()
      continue
    }
    const end = follow(last.list[last.next++], { names, at: last.at }, effort)
    if (end?.at === names.length) found.push(end.value)
    else if (end) open.push({ list: end.value as unknown[], next: 0, at: end.at + 1 })
  }
  return found
}

/** The way from here on. It is not cut short by copies: a descriptor may have a path of 100,000 names. */
interface Way {
  names: readonly string[]
  at: number
}

/** Goes on to its end, or to a list that is to be gone through; undefined: it leads nowhere. */
function follow(value: unknown, { names, at }: Way, effort: Effort): { value: unknown; at: number } | undefined {
  for (let name = names[at]; name !== undefined; name = names[++at]) {
    effort.spend(LOOK)
    if (Array.isArray(value)) {
      if (name === '[]') return { value, at }
      if (!/^\d+$/.test(name) || Number(name) >= value.length) return undefined
      value = value[Number(name)]
    } else if (typeof value === 'object' && value !== null && Object.hasOwn(value, name))
      value = (value as Record<string, unknown>)[name]
    else return undefined
  }
  effort.spend(LOOK)
  return { value, at }
}

function* isOneOf(found: readonly unknown[], wanted: Scalar | readonly Scalar[], effort: Effort): Pieces<boolean> {
  for (const one of [wanted].flat()) {
    effort.spend(LOOK)
    if (effort.endsPiece()) yield
    const isThere =
      typeof one === 'string' && one.includes('*') ? yield* someFits(found, one, effort) : has(found, one, effort)
    if (isThere) return true
  }
  return false
}

/** So many characters of texts are compared in the time of one that a pattern is held against. */
const EQUAL_AT_ONCE = 8

function has(found: readonly unknown[], one: Scalar, effort: Effort): boolean {
  effort.spend(found.length * (LOOK + (typeof one === 'string' ? Math.floor(one.length / EQUAL_AT_ONCE) : 0)))
  return found.includes(one)
}

function* someFits(found: readonly unknown[], pattern: string, effort: Effort): Pieces<boolean> {
  const glob = globOf(pattern, effort)
  for (const value of found) {
    effort.spend(LOOK)
    if (effort.endsPiece()) yield
    if (typeof value === 'string' && matchesGlob(glob, value, effort)) return true
  }
  return false
}
