import { createHash } from 'node:crypto'
import { inSlices } from './in-slices.ts'
import { buildRedactor, type Redactor, type SecretValues } from './redactor.ts'

/** Making one takes milliseconds or seconds, and runs that follow one another mostly have the same secrets. */
export interface RedactorCache {
  of(secrets: SecretValues): Promise<Redactor>
}

const MOST = 32
/** All that is kept has so much memory. Of most secrets one has less than a megabyte; of 128 KiB it may have 250. */
const MOST_BYTES = 64 * 1024 * 1024

interface Cached {
  redactor: Promise<Redactor>
  /** 0 while it is made. */
  bytes: number
}

export function keepRedactors(mostBytes = MOST_BYTES): RedactorCache {
  /** The one used last is the last. Runs that begin at the same time wait for the same one. */
  const cache = new Map<string, Cached>()

  function makeRoom(): void {
    let bytes = [...cache.values()].reduce((sum, each) => sum + each.bytes, 0)
    for (const [key, oldest] of cache) {
      if (cache.size <= 1 || (cache.size <= MOST && bytes <= mostBytes)) return
      cache.delete(key)
      bytes -= oldest.bytes
    }
  }

  function make(key: string, secrets: SecretValues): Cached {
    const cached: Cached = { redactor: inSlices(buildRedactor(secrets)), bytes: 0 }
    const measure = ({ bytes }: Redactor) => {
      cached.bytes = bytes
      makeRoom()
    }
    // The caller is told why.
    void cached.redactor.then(measure, () => cache.delete(key))
    return cached
  }

  return {
    of(secrets) {
      const text = textOf(secrets)
      const key = createHash('sha256').update(text).digest('base64')
      const found = cache.get(key) ?? make(key, secrets)
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
