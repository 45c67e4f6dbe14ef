import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { createHashes } from './hashes.ts'
import type { Download } from './hashes.ts'
import { madeOnce } from './made-once.ts'
import { PARTS } from './parts.ts'
import { isWhole, readSums, SUMS, sumsText } from './sums.ts'

/** The agent of this version, for machines that are to become one. */
export interface Downloads {
  /** Nothing under a name that is not handed out. Waits while the archives are being made. */
  find(name: string): Promise<Download | undefined>
  /** What `sha256sum --check` reads: all archives. */
  sums(): Promise<string>
  /** Has the archives made, for somebody who is about to ask for them. */
  prepare(): void
  close(): void
}

export interface DownloadsOptions {
  /** What is made is kept here. */
  folder: string
  /** Archives of other platforms, or of all, which somebody else has made. */
  given: string | undefined
  /** Goes into the archive in place of the Node of this process. */
  node?: string
  log: Log
}

const BUILD = join(import.meta.dirname, 'build.ts')
/** It takes some ten seconds of a processor. */
const BUILD_MS = 180_000
const ARCHIVE = /^windlass-agent-[\w.+-]+\.(tar\.gz|tgz)$/

const RECIPES: Readonly<Record<string, string>> = {
  'agent.Dockerfile': PARTS.dockerfile,
  'agent.yaml': PARTS.kubernetes,
  'windlass-agent.service': PARTS.unit,
  'windlass-agent.user.service': PARTS.userUnit,
}

export function createDownloads({ folder, given, node = process.execPath, log }: DownloadsOptions): Downloads {
  const closing = new AbortController()
  const hashes = createHashes()
  const tell = (error: unknown) => {
    // A coordinator that stops makes nothing any more.
    if (!closing.signal.aborted) log.error('downloads.failed', { error })
  }
  /** The folder of the archives. */
  const made = madeOnce({ make, isThere: isWhole, tell })

  // In a process of its own: it takes all of a processor for seconds, and esbuild's memory is gone with it.
  async function make(): Promise<string> {
    const startedAt = performance.now()
    const options = { timeout: BUILD_MS, killSignal: 'SIGKILL', signal: closing.signal } as const
    const { stdout } = await promisify(execFile)(process.execPath, [BUILD, folder, node], options)
    log('downloads.made', { tookMs: Math.round(performance.now() - startedAt) })
    return join(folder, stdout.trim())
  }

  async function own(): Promise<Map<string, Download>> {
    const home = await made().catch(() => {
      throw new Fault('UNAVAILABLE', undefined, 'The agent could not be packed; the log of the coordinator says why.')
    })
    const sums = readSums(await readFile(join(home, SUMS), 'utf8'))
    return new Map([...sums].map(([name, sha256]) => [name, { path: join(home, name), sha256 }]))
  }

  async function all(): Promise<Map<string, Download>> {
    return new Map([...(await own()), ...(await givenFiles())])
  }

  async function givenFiles(): Promise<Map<string, Download>> {
    if (given === undefined) return new Map()
    const names = (await readdir(given)).filter((name) => ARCHIVE.test(name))
    const files = names.map(async (name) => [name, await hashes.of(join(given, name))] as const)
    return new Map(await Promise.all(files))
  }

  return {
    async find(name) {
      const recipe = Object.hasOwn(RECIPES, name) ? RECIPES[name] : undefined
      if (recipe !== undefined) return hashes.of(recipe)
      if (!ARCHIVE.test(name)) return undefined
      return (await givenFiles()).get(name) ?? (await own()).get(name)
    },
    async sums() {
      return sumsText(new Map([...(await all())].map(([name, { sha256 }]) => [name, sha256])))
    },
    // A failure stands in the log already, and the next request is told of it.
    prepare: () => void made().catch(() => undefined),
    close: () => closing.abort(),
  }
}
