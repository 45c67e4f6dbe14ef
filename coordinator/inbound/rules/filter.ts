import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Effort } from './effort.ts'
import { matchesGlob } from './patterns.ts'

type Filter = Descriptor['connections'][number]['filter']
type Wanted = Filter[string]
type Scalar = string | number | boolean | null

/** The first field of a filter that the payload does not fit; undefined where it fits all. */
export function refusedBy(filter: Filter, payload: unknown, effort: Effort): string | undefined {
  return Object.entries(filter).find(([path, wanted]) => !fits(payload, { path, wanted }, effort))?.[0]
}

function fits(payload: unknown, { path, wanted }: { path: string; wanted: Wanted }, effort: Effort): boolean {
  effort.spend(path.length)
  const names = path.replaceAll('[]', '.[]').split('.').filter(Boolean)
  const found = valuesAt(payload, { names, at: 0 }, effort)
  const isOneOf = (list: Scalar | readonly Scalar[]) =>
    [list].flat().some((one) => found.some((value) => isEqual(value, one, effort)))
  // A field that is missing equals nothing, so it fits every `not`.
  return typeof wanted === 'object' && wanted !== null && 'not' in wanted ? !isOneOf(wanted.not) : isOneOf(wanted)
}

/** Of a list so many elements are looked at: those who post choose how many there are. */
const MOST_ELEMENTS = 1000
/** A look at an element takes as long as comparing so many characters. */
const CHARACTERS_PER_LOOK = 8

/** The way from here on. It is not cut short by copies: a descriptor may have a path of 100,000 names. */
interface Way {
  names: readonly string[]
  at: number
}

/** What stands there: several values where the path goes through all elements of a list. */
function valuesAt(value: unknown, { names, at }: Way, effort: Effort): unknown[] {
  effort.spend(CHARACTERS_PER_LOOK)
  const name = names[at]
  const rest = { names, at: at + 1 }
  if (name === undefined) return [value]
  if (Array.isArray(value)) {
    if (name === '[]') return valuesIn(value, rest, effort)
    return /^\d+$/.test(name) && Number(name) < value.length ? valuesAt(value[Number(name)], rest, effort) : []
  }
  const isThere = typeof value === 'object' && value !== null && Object.hasOwn(value, name)
  return isThere ? valuesAt((value as Record<string, unknown>)[name], rest, effort) : []
}

/** Stops when enough is found: what would be thrown away is not paid for. */
function valuesIn(list: readonly unknown[], way: Way, effort: Effort): unknown[] {
  const found: unknown[] = []
  for (const one of list.slice(0, MOST_ELEMENTS)) {
    found.push(...valuesAt(one, way, effort))
    if (found.length >= MOST_ELEMENTS) break
  }
  return found.slice(0, MOST_ELEMENTS)
}

function isEqual(value: unknown, wanted: Scalar, effort: Effort): boolean {
  effort.spend(CHARACTERS_PER_LOOK)
  if (typeof wanted === 'string' && wanted.includes('*'))
    return typeof value === 'string' && matchesGlob(wanted, value, effort)
  return value === wanted
}
