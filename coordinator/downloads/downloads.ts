import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { promisify } from 'node:util'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { PARTS } from './parts.ts'
import { isWhole, readSums, SUMS, sumsText } from './sums.ts'

/** A file to hand out. */
export interface Download {
  path: string
  /** In hex. */
  sha256: string
}

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
const RETRY_MS = 30_000
const TRIES = 2
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
  let making: Promise<string> | undefined

  /** The folder of the archives. Made when they are first asked for, and again when somebody has removed them. */
  async function made(tries = TRIES): Promise<string> {
    const current = (making ??= begin())
    const home = await current
    if (await isWhole(home)) return home
    if (making === current) making = undefined
    if (tries > 1) return made(tries - 1)
    const error = new Error('the archives vanish as soon as they are made')
    tell(error)
    throw error
  }

  /** What has failed stays so for a while: anybody may ask, and each try takes all of a processor. */
  function begin(): Promise<string> {
    const current = make()
    current.catch((error: unknown) => {
      tell(error)
      setTimeout(() => (making = undefined), RETRY_MS).unref()
    })
    return current
  }

  // In a process of its own: it takes all of a processor for seconds, and esbuild's memory is gone with it.
  async function make(): Promise<string> {
    const startedAt = performance.now()
    const options = { timeout: BUILD_MS, killSignal: 'SIGKILL', signal: closing.signal } as const
    const { stdout } = await promisify(execFile)(process.execPath, [BUILD, folder, node], options)
    log('downloads.made', { tookMs: Math.round(performance.now() - startedAt) })
    return join(folder, stdout.trim())
  }

  function tell(error: unknown): void {
    // A coordinator that stops makes nothing any more.
    if (!closing.signal.aborted) log.error('downloads.failed', { error })
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

/** Hashes of files, remembered while the file has the same size and age. */
function createHashes() {
  const known = new Map<string, { mark: string; sha256: Promise<string> }>()
  return {
    async of(path: string): Promise<Download> {
      const { size, mtimeMs } = await stat(path)
      const mark = `${size} ${mtimeMs}`
      const found = known.get(path)
      if (found?.mark === mark) return { path, sha256: await found.sha256 }
      const sha256 = hashOf(path)
      known.set(path, { mark, sha256 })
      sha256.catch(() => known.delete(path))
      return { path, sha256: await sha256 }
    },
  }
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256')
  await pipeline(createReadStream(path), hash)
  return hash.digest('hex')
}
