import { createHash } from 'node:crypto'
import { inSlices } from './in-slices.ts'
import { buildRedactor, type Redactor, type SecretValues } from './redactor.ts'

/** Making one takes milliseconds or seconds, and runs that follow one another mostly have the same secrets. */
export interface RedactorCache {
  of(secrets: SecretValues): Promise<Redactor>
}

const MOST = 32
/** Of secrets in all: what is made of them is up to a thousand times as large. */
const MOST_BYTES = 256 * 1024

export function keepRedactors(): RedactorCache {
  /** The one used last is the last. Runs that begin at the same time wait for the same one. */
  const cache = new Map<string, { redactor: Promise<Redactor>; bytes: number }>()

  function makeRoom(): void {
    let bytes = [...cache.values()].reduce((sum, each) => sum + each.bytes, 0)
    for (const [key, oldest] of cache) {
      if (cache.size <= 1 || (cache.size <= MOST && bytes <= MOST_BYTES)) return
      cache.delete(key)
      bytes -= oldest.bytes
    }
  }

  return {
    of(secrets) {
      const text = textOf(secrets)
      const key = createHash('sha256').update(text).digest('base64')
      const found = cache.get(key) ?? { redactor: inSlices(buildRedactor(secrets)), bytes: text.length }
      cache.delete(key)
      cache.set(key, found)
      makeRoom()
      return found.redactor
    },
  }
}

function textOf(secrets: SecretValues): string {
  const names = [...secrets].map(([name, values]) => [name, [...values].sort()] as const)
  return JSON.stringify(names.sort(([one], [other]) => (one < other ? -1 : 1)))
}
