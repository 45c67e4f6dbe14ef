import type { EntryKind } from '@windlass/shared/wire/journal.ts'

const ARGS_CHARACTERS = 500
const NAME_CHARACTERS = 200
const PATH_CHARACTERS = 1_000
const PATH_END_CHARACTERS = 900

/** What makes a call the same call in a replay. */
export interface CallKey {
  parent: string
  kind: EntryKind
  name: string
  hash: string
  occurrence: number
}

export interface Arguments {
  hash: string
  /** Cut: for people, and to find the most alike. */
  args: string
}

// A step has none, and there may be thousands of them.
export const NO_ARGUMENTS: Arguments = { hash: '', args: '' }

export function argumentsOf(value: unknown): Arguments {
  const text = JSON.stringify(value) ?? 'null'
  const isPlain = typeof value !== 'object' || value === null
  return {
    hash: hashOf(isPlain ? text : canonical(JSON.parse(text))),
    args: text.slice(0, ARGS_CHARACTERS).toWellFormed(),
  }
}

export function keyOf(call: CallKey): string {
  return `${callOf(call)}\n${call.occurrence}`
}

/** Equal calls have it in common. */
export function callOf({ parent, kind, name, hash }: Omit<CallKey, 'occurrence'>): string {
  return `${parent}\n${kind}\n${name}\n${hash}`
}

/** What an agent writes in place of a secret in the prompt of a question, and so in its name. */
const HIDDEN = '***'

/** Recorded under a name that is not the whole of what the program called it. */
export const isHidden = ({ kind, name }: Pick<CallKey, 'kind' | 'name'>) => kind === 'input' && name.includes(HIDDEN)

/** Where a name was hidden in part, its key does not find it. */
export function isSameCall(recorded: CallKey, call: CallKey): boolean {
  if (recorded.hash !== call.hash || recorded.occurrence !== call.occurrence) return false
  return recorded.kind === call.kind && recorded.parent === call.parent && isNamed(recorded, call.name)
}

/** Whether a call may be the one that was recorded under this name. What is hidden in it may have been anything. */
export function isNamed(recorded: Pick<CallKey, 'kind' | 'name'>, name: string): boolean {
  if (recorded.name === name || !isHidden(recorded)) return recorded.name === name
  const parts = recorded.name.split(HIDDEN)
  const last = parts.pop() ?? ''
  let at = 0
  for (const [index, part] of parts.entries()) {
    const found = name.indexOf(part, at)
    if (found < 0 || (index === 0 && found > 0)) return false
    at = found + part.length
  }
  return name.length - last.length >= at && name.endsWith(last)
}

/** PostgreSQL keeps neither NUL nor half a character. */
export function cleanName(name: string): string {
  return name.slice(0, NAME_CHARACTERS).replaceAll('\0', '').toWellFormed()
}

/** Bounded, however deep: a hash stands for what is cut off. */
export function pathOf(parent: string, name: string, occurrence: number): string {
  const path = `${parent}/${name.replace(/[%/#]/g, encodeURIComponent)}#${occurrence}`
  if (path.length <= PATH_CHARACTERS) return path
  return `/…${hashOf(path)}…${path.slice(-PATH_END_CHARACTERS).toWellFormed()}`
}

/** Counts equal calls: 1, 2, 3 … */
export function createCounter(): (call: Omit<CallKey, 'occurrence'>) => number {
  const counts = new Map<string, number>()
  return (call) => {
    const key = callOf(call)
    const count = (counts.get(key) ?? 0) + 1
    counts.set(key, count)
    return count
  }
}

/**
 * JSON with its keys in order: the same facts are the same text. Stands in shared as well, of which a runtime takes
 * types only.
 */
function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))
  return `{${fields.map(([key, inner]) => `${JSON.stringify(key)}:${canonical(inner)}`).join(',')}}`
}

/**
 * 106 bits by cyrb53 with two seeds: quick, and loads nothing. Nobody gains by finding two inputs with one hash: they
 * are that program's own.
 */
function hashOf(text: string): string {
  return cyrb53(text, 0).toString(36) + cyrb53(text, 1).toString(36)
}

function cyrb53(text: string, seed: number): number {
  let high = 0xdeadbeef ^ seed
  let low = 0x41c6ce57 ^ seed
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at)
    high = Math.imul(high ^ unit, 2654435761)
    low = Math.imul(low ^ unit, 1597334677)
  }
  high = Math.imul(high ^ (high >>> 16), 2246822507) ^ Math.imul(low ^ (low >>> 13), 3266489909)
  low = Math.imul(low ^ (low >>> 16), 2246822507) ^ Math.imul(high ^ (high >>> 13), 3266489909)
  return 4294967296 * (2097151 & low) + (high >>> 0)
}
