import { accessSync, constants, statSync } from 'node:fs'
import { mkdtemp, rename, rm } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import type { Log } from '@windlass/shared/log.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { Rest } from '../../link/rest.ts'
import { folderBytes, openCache } from './cache.ts'
import type { BundleCache } from './cache.ts'
import { isHostTrouble } from './host-trouble.ts'
import { BadBundle, unpack } from './unpack.ts'

export interface BundleOptions {
  folder: string
  cacheBytes: number
  rest: Pick<Rest, 'bundle'>
  log: Log
  /** How long a fetch is tried while the coordinator does not answer; 60 s by default. */
  deadlineMs?: number
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
}

/** The bundle will not become usable by asking again, here or anywhere. The message says why. */
export class BundleUnusable extends Error {
  override name = 'BundleUnusable'
}

const MAIN = 'main.mjs'
const UNWANTED = 'no longer wanted'
const DEADLINE_MS = 60_000
/** Bytes that arrive damaged may have been damaged on the way; the third time it is the bundle. */
const DAMAGED_TRIES = 3

export async function createBundles(options: BundleOptions): Promise<Bundles> {
  const { folder, log } = options
  const cache = await openCache(folder, options.cacheBytes, log)
  const fetching = new Map<string, Promise<void>>()

  const share = (digest: string) => {
    const started = fetching.get(digest) ?? fetchIt(digest).finally(() => fetching.delete(digest))
    fetching.set(digest, started)
    return started
  }

  const fetchIt = async (digest: string) => {
    // Not bound to the run that asked first: others may be waiting for the same bundle by now.
    const deadline = AbortSignal.timeout(options.deadlineMs ?? DEADLINE_MS)
    const draft = await fetchWithRetries(options, digest, deadline)
    if (!isUsable(draft)) {
      await rm(draft, { recursive: true, force: true })
      throw unusable(digest, new BadBundle(`it holds no ${MAIN}`))
    }
    const bytes = await folderBytes(draft)
    await rename(draft, path.join(folder, digest))
    cache.add(digest, bytes)
    log('bundle.fetched', { digest, bytes })
  }

  return {
    stats: () => cache.stats(),
    empty: () => cache.empty(),
    retain({ digest }) {
      cache.hold(digest)
      return () => cache.release(digest)
    },
    async hold({ digest }, signal) {
      const folderOf = () => ({ folder: path.join(folder, digest), release: () => cache.release(digest) })
      // Held before the wait, so that it is not removed between its arrival and its use.
      cache.hold(digest)
      if (cache.has(digest)) {
        if (isUsable(path.join(folder, digest))) return folderOf()
        log.warn('bundle.damaged', { digest, advice: 'something outside of the agent changed its folder' })
        cache.drop(digest)
      }
      try {
        if (signal.aborted) throw new Error(UNWANTED)
        await abortable(share(digest), signal)
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

/** Answers the folder into which it was unpacked. */
async function fetchWithRetries(options: BundleOptions, digest: string, deadline: AbortSignal): Promise<string> {
  for (let failures = 0, damaged = 0; ; failures++) {
    const draft = await mkdtemp(path.join(options.folder, 'draft-'))
    try {
      await fetchInto(options, digest, draft, deadline)
      return draft
    } catch (error) {
      await rm(draft, { recursive: true, force: true })
      if (isDamage(error)) damaged += 1
      if (isFinal(error) || damaged >= DAMAGED_TRIES) throw unusable(digest, error)
      // Another host may have what this one lacks, and the run need not wait for it.
      if (deadline.aborted || isHostTrouble(error))
        throw new Error(`The bundle could not be fetched: ${reasonOf(error)}`, { cause: error })
      options.log.warn('bundle.retry', { digest, error })
    }
    await pause(backoffMs(failures, { firstMs: 200, capMs: 5_000 }), deadline)
  }
}

async function fetchInto(options: BundleOptions, digest: string, draft: string, deadline: AbortSignal): Promise<void> {
  const body = await options.rest.bundle(digest, deadline)
  const found = await unpack(Readable.fromWeb(body, { signal: deadline }), draft)
  if (found !== digest) throw new WrongDigest(`its SHA-256 is ${found}`)
}

class WrongDigest extends Error {}

function isDamage(error: unknown): boolean {
  const code = (error as { code?: unknown } | null)?.code
  return error instanceof WrongDigest || (typeof code === 'string' && code.startsWith('Z_'))
}

function isFinal(error: unknown): boolean {
  const isAbsent = error instanceof ApiError && error.status === 404
  return isAbsent || error instanceof BadBundle
}

function unusable(digest: string, error: unknown): BundleUnusable {
  const why = reasonOf(error)
  const advice = 'Deploy the workflow again; if that does not help, look at the log of the agent.'
  return new BundleUnusable(`The agent could not unpack the bundle ${digest.slice(0, 12)}…: ${why}. ${advice}`, {
    cause: error,
  })
}

function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = () => reject(new Error(UNWANTED))
    signal.addEventListener('abort', abort, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
