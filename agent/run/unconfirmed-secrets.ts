import { bytesOf, MOST_BYTES } from './given-secrets.ts'

/**
 * What programs that were taken back say they were given, and the coordinator does not: it was changed since, or it is
 * a lie. Finding it takes up to 600 times the memory, so that all programs together may say as much as one may have.
 */
export interface UnconfirmedSecrets {
  /** False when there is no room for them. The same values of several runs count once. */
  add(run: string, values: readonly string[]): boolean
  drop(run: string): void
}

export function keepUnconfirmed(mostBytes = MOST_BYTES): UnconfirmedSecrets {
  const ofRuns = new Map<string, readonly string[]>()
  return {
    add(run, values) {
      if (values.length === 0) return true
      const all = new Set([...ofRuns.values(), values].flat())
      if (bytesOf([...all]) > mostBytes) return false
      ofRuns.set(run, values)
      return true
    },
    drop: (run) => void ofRuns.delete(run),
  }
}
