import { createHash } from 'node:crypto'
import { createRedactor, type Redactor, type SecretValues } from './redactor.ts'

/** Making one takes milliseconds, and runs that follow one another mostly have the same secrets. */
export interface KeptRedactors {
  of(secrets: SecretValues): Redactor
}

const MOST = 32
/** Of secrets in all: what is made of them is up to a thousand times as large. */
const MOST_BYTES = 256 * 1024

export function keepRedactors(): KeptRedactors {
  /** The one used last is the last. */
  const kept = new Map<string, { redactor: Redactor; bytes: number }>()

  function makeRoom(): void {
    let bytes = [...kept.values()].reduce((sum, each) => sum + each.bytes, 0)
    for (const [key, oldest] of kept) {
      if (kept.size <= 1 || (kept.size <= MOST && bytes <= MOST_BYTES)) return
      kept.delete(key)
      bytes -= oldest.bytes
    }
  }

  return {
    of(secrets) {
      const text = textOf(secrets)
      const key = createHash('sha256').update(text).digest('base64')
      const found = kept.get(key) ?? { redactor: createRedactor(secrets), bytes: text.length }
      kept.delete(key)
      kept.set(key, found)
      makeRoom()
      return found.redactor
    },
  }
}

function textOf(secrets: SecretValues): string {
  const names = [...secrets].map(([name, values]) => [name, [...values].sort()] as const)
  return JSON.stringify(names.sort(([one], [other]) => (one < other ? -1 : 1)))
}
