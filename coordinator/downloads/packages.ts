import { execFile } from 'node:child_process'
import { access, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { SDK_PACKAGE_FILE, SdkPackages } from '@windlass/shared/model/sdk-packages.ts'
import { createHashes } from './hashes.ts'
import type { Download } from './hashes.ts'
import { madeOnce } from './made-once.ts'

/** The SDK and the command of this version, as packages that npm installs from here. */
export interface Packages {
  /** Which they are. Waits while they are being made. */
  current(): Promise<SdkPackages>
  /** One of now, or one that was made here earlier and is still kept; nothing under another name. */
  find(file: string): Promise<Download | undefined>
  close(): void
}

const BUILD = join(import.meta.dirname, 'build-packages.ts')
/** It takes some three seconds of a processor. */
const BUILD_MS = 120_000
const DAY_MS = 24 * 3_600_000

/** `folder` is for what is made. */
export function createPackages({ folder, log }: { folder: string; log: Log }): Packages {
  const closing = new AbortController()
  const hashes = createHashes()
  const touchedAt = new Map<string, number>()
  const made = madeOnce({ make, isThere: areThere, tell })

  // In a process of its own: it takes all of a processor for seconds, and esbuild's memory is gone with it.
  async function make(): Promise<SdkPackages> {
    const startedAt = performance.now()
    const options = { timeout: BUILD_MS, killSignal: 'SIGKILL', signal: closing.signal } as const
    const { stdout } = await promisify(execFile)(process.execPath, [BUILD, folder], options)
    log('packages.made', { tookMs: Math.round(performance.now() - startedAt) })
    return SdkPackages.parse(JSON.parse(stdout))
  }

  async function areThere({ files }: SdkPackages): Promise<boolean> {
    const found = await Promise.all(Object.values(files).map(isThere))
    return found.every(Boolean)
  }

  async function isThere(file: string): Promise<boolean> {
    return access(join(folder, file)).then(
      () => true,
      () => false,
    )
  }

  /** Its name has the first digits of its hash: one that a power cut has damaged is made anew, or is gone. */
  async function whole(file: string): Promise<Download | undefined> {
    if (!(await isThere(file))) return undefined
    await touch(file)
    const found = await hashes.of(join(folder, file))
    if (found.sha256.startsWith(/([0-9a-f]{16})\.tgz$/.exec(file)![1]!)) return found
    log.warn('packages.damaged', { file })
    await rm(found.path, { force: true })
    return undefined
  }

  /** What is asked for is kept on. */
  async function touch(file: string): Promise<void> {
    const now = Date.now()
    if (now - (touchedAt.get(file) ?? 0) < DAY_MS) return
    touchedAt.set(file, now)
    // A file that cannot be touched can be handed out all the same.
    await utimes(join(folder, file), new Date(now), new Date(now)).catch((error: unknown) => {
      touchedAt.delete(file)
      log.warn('packages.untouched', { file, error })
    })
  }

  function tell(error: unknown): void {
    // A coordinator that stops makes nothing any more.
    if (!closing.signal.aborted) log.error('packages.failed', { error })
  }

  async function current(): Promise<SdkPackages> {
    return made().catch(() => {
      throw new Fault('UNAVAILABLE', undefined, 'The packages could not be made; the log of the coordinator says why.')
    })
  }

  return {
    current,
    async find(file) {
      if (!SDK_PACKAGE_FILE.test(file)) return undefined
      const found = await whole(file)
      if (found) return found
      const { files } = await current()
      return Object.values(files).includes(file) ? whole(file) : undefined
    },
    close: () => closing.abort(),
  }
}
