import { createHash } from 'node:crypto'
import { inSlices } from './in-slices.ts'
import { buildRedactor, type Redactor, type SecretValues } from './redactor.ts'

/**
 * What finds the secrets of runs. Making one takes milliseconds or seconds, and runs that follow one another mostly
 * have the same secrets: these share one.
 */
export interface RedactorCache {
  /** For a run, until it is released. Undefined: it is large, and other runs have all that there is for large ones. */
  hold(run: string, secrets: SecretValues): Promise<Redactor | undefined>
  /** The same for a program that tells something already: there is room for it, whatever others have. */
  holdAnyway(run: string, secrets: SecretValues): Promise<Redactor>
  release(run: string): void
}

/** What the redactors of an agent may take in memory. Those of most secrets take less than one MiB. */
export interface RedactorLimits {
  /** Of one: what would take more is not made. */
  mostBytes: number
  /** Of those that no run has at present. */
  unusedBytes: number
  /** Up to this one is not large: each run has room for it. */
  smallBytes: number
  /** Of all large ones that runs have; more than one may have, so that each has room at some time. */
  largeBytes: number
}

const MOST_UNUSED = 32
const MOST_SIZES = 1000
const MIB = 1024 * 1024
/**
 * Redactors of 128 KiB of base64 take 5, of as many quotes, or letters beyond ASCII, 16 to 25, and of such that stand
 * in no order some 75.
 */
export const MOST_MIB = 96
const LIMITS: RedactorLimits = {
  mostBytes: MOST_MIB * MIB,
  unusedBytes: 64 * MIB,
  smallBytes: 8 * MIB,
  largeBytes: 128 * MIB,
}
/** To make one of more bytes of secrets takes several times its memory: one such is made at a time. */
const LONG_BYTES = 16 * 1024

interface Keyed {
  key: string
  secrets: SecretValues
}

interface Cached {
  redactor: Promise<Redactor>
  /** 0 while it is made. */
  bytes: number
  runs: Set<string>
  /** One of the runs was told that there is room for it. */
  isIn: boolean
}

export function keepRedactors(limits: Partial<RedactorLimits> = {}): RedactorCache {
  return new Redactors({ ...LIMITS, ...limits })
}

class Redactors implements RedactorCache {
  readonly #limits: RedactorLimits
  /** The one used last is the last. Runs that begin at the same time wait for the same one. */
  readonly #cache = new Map<string, Cached>()
  readonly #ofRuns = new Map<string, Cached>()
  /** Of large ones that were made, in bytes. */
  readonly #sizes = new Map<string, number>()
  #making: Promise<unknown> = Promise.resolve()

  constructor(limits: RedactorLimits) {
    this.#limits = limits
  }

  async hold(run: string, secrets: SecretValues): Promise<Redactor | undefined> {
    const key = keyOf(secrets)
    // Others wait for what is made, and it would be put off again.
    if (!this.#hasRoomFor(key)) return undefined
    const { cached, redactor } = await this.#take(run, { key, secrets })
    if (!this.#hasRoomFor(key)) {
      // It stays a while as an unused one: the run may come again soon.
      this.#releaseOf(run, cached)
      return undefined
    }
    // The run may have been released meanwhile.
    cached.isIn = cached.runs.size > 0
    return redactor
  }

  async holdAnyway(run: string, secrets: SecretValues): Promise<Redactor> {
    const { cached, redactor } = await this.#take(run, { key: keyOf(secrets), secrets })
    cached.isIn = cached.runs.size > 0
    return redactor
  }

  release(run: string): void {
    const cached = this.#ofRuns.get(run)
    if (cached) this.#releaseOf(run, cached)
  }

  async #take(run: string, { key, secrets }: Keyed): Promise<{ cached: Cached; redactor: Redactor }> {
    const cached = this.#cache.get(key) ?? this.#make(key, secrets)
    this.#cache.delete(key)
    this.#cache.set(key, cached)
    this.release(run)
    this.#ofRuns.set(run, cached)
    cached.runs.add(run)
    this.#makeRoom()
    try {
      return { cached, redactor: await cached.redactor }
    } catch (error) {
      this.#releaseOf(run, cached)
      throw error
    }
  }

  #make(key: string, secrets: SecretValues): Cached {
    const isLong = bytesOf(secrets) > LONG_BYTES
    const make = () => inSlices(buildRedactor(secrets, this.#limits.mostBytes))
    const redactor = isLong ? this.#making.then(make) : make()
    const cached: Cached = { redactor, bytes: 0, runs: new Set(), isIn: false }
    const measure = ({ bytes }: Redactor) => {
      cached.bytes = bytes
      if (bytes > this.#limits.smallBytes) this.#remember(key, bytes)
      this.#makeRoom()
    }
    // The caller is told why.
    const made = redactor.then(measure, () => void this.#cache.delete(key))
    if (isLong) this.#making = made
    return cached
  }

  #remember(key: string, bytes: number): void {
    this.#sizes.delete(key)
    this.#sizes.set(key, bytes)
    const [oldest] = this.#sizes.keys()
    if (this.#sizes.size > MOST_SIZES && oldest !== undefined) this.#sizes.delete(oldest)
  }

  /** Of one that was never made, nothing is known. */
  #hasRoomFor(key: string): boolean {
    const bytes = this.#sizes.get(key) ?? 0
    if (this.#cache.get(key)?.isIn || bytes <= this.#limits.smallBytes) return true
    const large = [...this.#cache.values()].filter((each) => each.isIn && each.bytes > this.#limits.smallBytes)
    return large.reduce((sum, each) => sum + each.bytes, bytes) <= this.#limits.largeBytes
  }

  #releaseOf(run: string, cached: Cached): void {
    if (this.#ofRuns.get(run) === cached) this.#ofRuns.delete(run)
    cached.runs.delete(run)
    if (cached.runs.size > 0) return
    cached.isIn = false
    this.#makeRoom()
  }

  /** Of those that no run has, the longest unused go. One of them may stay, however large it is. */
  #makeRoom(): void {
    const unused = [...this.#cache].filter(([, { runs }]) => runs.size === 0)
    let bytes = unused.reduce((sum, [, cached]) => sum + cached.bytes, 0)
    let count = unused.length
    for (const [key, oldest] of unused) {
      if (count <= 1 || (count <= MOST_UNUSED && bytes <= this.#limits.unusedBytes)) return
      this.#cache.delete(key)
      bytes -= oldest.bytes
      count -= 1
    }
  }
}

function bytesOf(secrets: SecretValues): number {
  const values = new Set([...secrets.values()].flatMap((all) => [...all]))
  return [...values].reduce((sum, value) => sum + Buffer.byteLength(value), 0)
}

function keyOf(secrets: SecretValues): string {
  const names = [...secrets].map(([name, values]) => [name, [...values].sort()] as const)
  const text = JSON.stringify(names.sort(([one], [other]) => (one < other ? -1 : 1)))
  return createHash('sha256').update(text).digest('base64')
}
