import { isTooShort } from './redact/forms.ts'
import type { SecretValues } from './redact/redactor.ts'

/** In all. Finding them in everything that a run tells takes about a thousand times the memory. */
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
  forget(run: string): void
}

interface Value {
  name: string
  value: string
}

/** Runs of which it is remembered what they were given. */
const MOST_RUNS = 200

export function keepGivenSecrets(): GivenSecrets {
  /** The latest value of a run is its last. */
  const given = new Map<string, readonly Value[]>()

  return {
    has: (run) => given.has(run),
    add(run, values) {
      const current = Object.entries(values).map(([name, value]) => ({ name, value }))
      const former = (given.get(run) ?? []).filter(({ name, value }) => values[name] !== value && !isTooShort(value))
      const forgotten = former.splice(0, beyondRoom(former, bytesOf(Object.values(values))))
      const all = [...former, ...current]
      given.delete(run)
      given.set(run, all)
      for (const oldest of given.keys()) if (given.size > MOST_RUNS) given.delete(oldest)
      return { values: byName(all), forgotten: namesOf(forgotten, all) }
    },
    forget: (run) => void given.delete(run),
  }
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
