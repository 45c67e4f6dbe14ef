import { createHash } from 'node:crypto'
import { isTooShort } from './redact/forms.ts'
import type { SecretValues } from './redact/redactor.ts'

/** In all. Finding them in everything that a run tells takes up to 600 times the memory. */
export const MOST_BYTES = 128 * 1024

/** What is hidden for a run: what it is given now, and what its processes before this one were given. */
export interface Hidden {
  values: SecretValues
  /** Names of former values that are hidden no longer: there was no room for more. */
  forgotten: readonly string[]
}

/** A run that goes on in a new process may still print what an earlier one was given, from its journal for instance. */
export interface GivenSecrets {
  has(run: string): boolean
  add(run: string, values: Readonly<Record<string, string>>): Hidden
  /** A process of it is gone, and the run may go on later, here or elsewhere. */
  rests(run: string): void
  forget(run: string): void
}

interface Value {
  name: string
  value: string
}

interface Given {
  /** The latest is the last. */
  values: readonly Value[]
  /** Digests of what there was no room for while the run was at rest, with the names. */
  dropped: readonly Value[]
  isAtRest: boolean
}

/** Of all runs at rest. Runs of an org mostly have the same values, which are held once. */
const HELD_BYTES = 16 * 1024 * 1024
/** Runs at rest of which at least the names are remembered. */
const MOST_AT_REST = 20_000
/** What an entry, and what one more value of a run takes besides the text itself. */
const ENTRY_BYTES = 400
const REFERENCE_BYTES = 8

export function keepGivenSecrets({ heldBytes = HELD_BYTES, mostAtRest = MOST_AT_REST } = {}): GivenSecrets {
  /** What rested last is the last of those at rest. */
  const given = new Map<string, Given>()
  const atRest = new Map<string, Given>()
  const texts = shareTexts()
  let bytes = 0

  /** Runs in progress have theirs whatever they take: their number is that of the slots. */
  function makeRoom(): void {
    for (const [run, oldest] of atRest) {
      if (bytes + texts.bytes() <= heldBytes) break
      if (oldest.values.length > 0) set(run, { values: [], dropped: digestsOf(oldest), isAtRest: true })
    }
    for (const run of atRest.keys()) if (atRest.size > mostAtRest) drop(run)
  }

  function drop(run: string): void {
    const found = given.get(run)
    if (!found) return
    bytes -= ENTRY_BYTES + found.values.length * REFERENCE_BYTES
    texts.release(found.values)
    given.delete(run)
    atRest.delete(run)
  }

  /** In its place among those at rest, where it has one. */
  function set(run: string, { values, ...next }: Given): void {
    const before = given.get(run)
    const held = { values: texts.hold(values), ...next }
    if (before) texts.release(before.values)
    bytes += held.values.length * REFERENCE_BYTES - (before ? before.values.length * REFERENCE_BYTES : -ENTRY_BYTES)
    given.set(run, held)
    if (held.isAtRest) atRest.set(run, held)
    else atRest.delete(run)
  }

  return {
    has: (run) => given.has(run),
    add(run, values) {
      const before = given.get(run)
      const current = Object.entries(values).map(([name, value]) => ({ name, value }))
      const former = (before?.values ?? []).filter(({ name, value }) => values[name] !== value && !isTooShort(value))
      const forgotten = former.splice(0, beyondRoom(former, bytesOf(Object.values(values))))
      const all = [...former, ...current]
      set(run, { values: all, dropped: [], isAtRest: false })
      makeRoom()
      const noRoom = before?.dropped ?? []
      const hidden = new Set(noRoom.length > 0 ? all.map(({ value }) => digestOf(value)) : [])
      const dropped = noRoom.filter(({ value }) => !hidden.has(value)).map(({ name }) => name)
      return { values: byName(all), forgotten: [...new Set([...dropped, ...namesOf(forgotten, all)])] }
    },
    rests(run) {
      const found = given.get(run)
      if (!found) return
      set(run, { ...found, isAtRest: true })
      makeRoom()
    },
    forget: drop,
  }
}

/** The same value under the same name is one, however many runs have it. */
function shareTexts() {
  const shared = new Map<string, { value: Value; count: number; bytes: number }>()
  let sum = 0
  const keyOf = ({ name, value }: Value) => `${name}=${value}`
  return {
    bytes: () => sum,
    hold: (values: readonly Value[]): Value[] =>
      values.map((value) => {
        const key = keyOf(value)
        const found = shared.get(key) ?? { value, count: 0, bytes: 2 * Buffer.byteLength(key) + ENTRY_BYTES }
        if (found.count === 0) sum += found.bytes
        found.count += 1
        shared.set(key, found)
        return found.value
      }),
    release(values: readonly Value[]): void {
      for (const value of values) {
        const key = keyOf(value)
        const found = shared.get(key)
        if (!found) continue
        found.count -= 1
        if (found.count > 0) continue
        shared.delete(key)
        sum -= found.bytes
      }
    },
  }
}

const digestOf = (value: string) => createHash('sha256').update(value).digest('base64')

function digestsOf({ values, dropped }: Given): Value[] {
  const worthHiding = values.filter(({ value }) => !isTooShort(value))
  return [...dropped, ...worthHiding.map(({ name, value }) => ({ name, value: digestOf(value) }))]
}

export function bytesOf(values: readonly string[]): number {
  return values.reduce((sum, value) => sum + Buffer.byteLength(value), 0)
}

/** How many of the oldest have no room beside those that came later. */
function beyondRoom(former: readonly Value[], currentBytes: number): number {
  let bytes = currentBytes
  return 1 + former.findLastIndex(({ value }) => (bytes += Buffer.byteLength(value)) > MOST_BYTES)
}

function byName(values: readonly Value[]): SecretValues {
  const names = new Map<string, Set<string>>()
  for (const { name, value } of values) names.set(name, (names.get(name) ?? new Set()).add(value))
  return names
}

/** A value may have gone on under another name. */
function namesOf(forgotten: readonly Value[], hidden: readonly Value[]): string[] {
  const values = new Set(hidden.map(({ value }) => value))
  return [...new Set(forgotten.filter(({ value }) => !values.has(value)).map(({ name }) => name))]
}
