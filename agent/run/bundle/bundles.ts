import { accessSync, constants, statSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { Arrival } from './arrival.ts'
import { bundlePieces, FETCH_PACES, isAbsent, NotArrived, Truncated } from './bundle-pieces.ts'
import type { PiecesOptions } from './bundle-pieces.ts'
import { openCache } from './cache.ts'
import type { BundleCache } from './cache.ts'
import { isHostTrouble } from './host-trouble.ts'
import { createTurns } from './turns.ts'
import { BadBundle, unpack } from './unpack.ts'

export interface BundleOptions extends Omit<PiecesOptions, 'paces'> {
  folder: string
  cacheBytes: number
  /** 2,000 by default. */
  mostCached?: number
  /** Digests of what is executed while this agent starts. */
  inUse?: readonly string[]
  paces?: PiecesOptions['paces']
}

export interface HeldBundle {
  /** Holds `main.mjs`. */
  folder: string
  /** From here on it may be removed to make room. */
  release(): void
}

/** Unpacked bundles by their digest: fetched once, shared by all runs, the longest unused removed first. */
export interface Bundles {
  hold(bundle: Offer['bundle'], signal: AbortSignal): Promise<HeldBundle>
  /** It is not fetched; where it is there it stays, until the answer is called. */
  retain(bundle: Offer['bundle']): () => void
  stats(): ReturnType<BundleCache['stats']>
  /** Gives back the room of all that no run uses. */
  empty(): void
  close(): Promise<void>
}

/** The bundle will not become usable by asking again, here or anywhere. The message says why. */
export class BundleUnusable extends Error {
  override name = 'BundleUnusable'
}

/** The run does not want it any more. The message says how far it had come. */
export class BundleUnwanted extends Error {
  override name = 'BundleUnwanted'
}

const MAIN = 'main.mjs'
/** The others wait: over a slow line all of them would be late, and one by one some runs begin. */
const AT_ONCE = 4
const MOST_CACHED = 2_000
/** So often the log says how far a bundle has come. */
const SLOW_MS = 30_000
/** Bytes that arrive damaged may have been damaged on the way; the third time it is the bundle. */
const DAMAGED_TRIES = 3
/** Whatever damages them may be over in a moment. */
const DAMAGED_BACKOFF = { firstMs: 500, capMs: 5_000 }

/** One for all who want the bundle. */
interface Fetch {
  readonly arrival: Arrival
  readonly done: Promise<void>
  /** How many wait for it. */
  wanted: number
}

export async function createBundles({ paces = FETCH_PACES, ...given }: BundleOptions): Promise<Bundles> {
  const options = { ...given, paces }
  const { folder, log } = options
  const limits = { bytes: options.cacheBytes, count: options.mostCached ?? MOST_CACHED }
  const cache = await openCache(folder, limits, log, options.inUse)
  const fetching = new Map<string, Fetch>()
  const turns = createTurns(AT_ONCE)

  const share = (bundle: Offer['bundle']): Fetch => {
    const { digest } = bundle
    const started = fetching.get(digest)
    if (started) return started
    const arrival = new Arrival(bundle, paces.stepBytes)
    const fetch: Fetch = { arrival, wanted: 0, done: inTurn(digest, arrival, () => fetch.wanted > 0) }
    fetching.set(digest, fetch)
    return fetch
  }

  const inTurn = async (digest: string, arrival: Arrival, isWanted: () => boolean) => {
    const pass = await turns.take()
    arrival.begin()
    const slow = setInterval(() => log('bundle.slow', { digest, reason: arrival.text() }), SLOW_MS)
    try {
      // Only here: one that is under way comes to its end. Its run was perhaps given back, and comes again.
      if (isWanted()) await fetchIt(digest, arrival)
    } finally {
      clearInterval(slow)
      fetching.delete(digest)
      pass()
    }
  }

  const fetchIt = async (digest: string, arrival: Arrival) => {
    const draft = await fetchWithRetries(options, digest, arrival)
    if (!isUsable(draft)) {
      await rm(draft, { recursive: true, force: true })
      throw unusable(digest, new BadBundle(`it holds no ${MAIN}`))
    }
    const bytes = await cache.put(digest, draft)
    log('bundle.fetched', { digest, bytes })
  }

  const wait = async (fetch: Fetch, signal: AbortSignal) => {
    fetch.wanted += 1
    try {
      await abortable(fetch.done, signal, () => new BundleUnwanted(fetch.arrival.text()))
    } finally {
      fetch.wanted -= 1
    }
  }

  return {
    stats: () => cache.stats(),
    empty: () => cache.empty(),
    close: () => cache.close(),
    retain({ digest }) {
      cache.hold(digest)
      return () => cache.release(digest)
    },
    async hold(bundle, signal) {
      const { digest } = bundle
      const folderOf = () => ({ folder: path.join(folder, digest), release: () => cache.release(digest) })
      // Held before the wait, so that it is not removed between its arrival and its use.
      cache.hold(digest)
      if (cache.has(digest)) {
        if (isUsable(path.join(folder, digest))) return folderOf()
        log.warn('bundle.damaged', { digest, advice: 'something outside of the agent changed its folder' })
        cache.drop(digest)
      }
      try {
        if (signal.aborted) throw new BundleUnwanted('its bundle was not asked for')
        await wait(share(bundle), signal)
        return folderOf()
      } catch (error) {
        cache.release(digest)
        throw error
      }
    },
  }
}

/** Looked at before every run: two calls of some microseconds each, which need no turn of the thread pool. */
function isUsable(bundle: string): boolean {
  const main = path.join(bundle, MAIN)
  try {
    accessSync(main, constants.R_OK)
    const found = statSync(main)
    return found.isFile() && found.size > 0
  } catch {
    // Gone, forbidden or a broken disk: whatever it is, another fetch says whether it lasts.
    return false
  }
}

type FetchOptions = PiecesOptions & Pick<BundleOptions, 'folder'>

/** Answers the folder into which it was unpacked. */
async function fetchWithRetries(options: FetchOptions, digest: string, arrival: Arrival): Promise<string> {
  for (let tries = 1; ; tries++) {
    const draft = await mkdtemp(path.join(options.folder, 'draft-'))
    try {
      const found = await unpack(Readable.from(bundlePieces(options, digest, arrival)), draft)
      if (found !== digest) throw new WrongDigest(`its SHA-256 is ${found}`)
      return draft
    } catch (error) {
      await rm(draft, { recursive: true, force: true })
      const isLast = tries >= DAMAGED_TRIES
      if (isAbsent(error) || error instanceof BadBundle || (isLast && isDamage(error))) throw unusable(digest, error)
      // Another host may have what this one lacks, and the run need not wait for it.
      if (isLast || error instanceof NotArrived || isHostTrouble(error))
        throw new Error(`The bundle could not be fetched: ${reasonOf(error)}`, { cause: error })
      options.log.warn('bundle.retry', { digest, error })
      arrival.startAgain()
      await pause(backoffMs(tries - 1, DAMAGED_BACKOFF))
    }
  }
}

class WrongDigest extends Error {}

function isDamage(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  if (error instanceof WrongDigest || error instanceof Truncated) return true
  return typeof code === 'string' && code.startsWith('Z_')
}

function unusable(digest: string, error: unknown): BundleUnusable {
  const why = reasonOf(error)
  const advice = 'Deploy the workflow again; if that does not help, look at the log of the agent.'
  return new BundleUnusable(`The agent could not unpack the bundle ${digest.slice(0, 12)}…: ${why}. ${advice}`, {
    cause: error,
  })
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal, why: () => Error): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(why())
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
