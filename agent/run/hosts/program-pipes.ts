import { randomBytes } from 'node:crypto'
import { closeSync, constants, openSync, rmSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { makePipes, makePipesNow, readPipe } from '../../os/named-pipes.ts'
import type { OwnPipe } from '../../os/process.ts'

/**
 * Pipes for descriptors 1 and 2 of programs that the next agent could take back. They have names, so that it finds
 * them, and the program has both of their ends: while no agent is there, what it writes waits in them, and nobody is
 * told that they are broken.
 */
export interface RawPipes {
  /** For a new process; undefined where there are none to be had. */
  take(): RawPair | undefined
  /** Those of a process of the agent before this one. */
  find(name: string): Record<Stream, Readable>
  /** Nobody needs them any more. */
  remove(name: string): void
  close(): Promise<void>
}

type Stream = 'stdout' | 'stderr'
type RawPair = { name: string } & Record<Stream, OwnPipe>

interface RawPipesOptions {
  folder: string
  /** Still in use by programs of the agent before this one. */
  except: readonly string[]
  onFailure: (error: unknown) => void
}

/** One call makes so many pairs, and the next one follows when half of them are taken. */
const BATCH = 32
const RETRY_MS = 30_000

/** On a full disk there may be none: that is no reason not to start. */
export async function openRawPipes(options: RawPipesOptions): Promise<RawPipes> {
  const pipes = new NamedRawPipes(options)
  try {
    await empty(options)
    await pipes.refill()
  } catch (error) {
    options.onFailure(error)
  }
  return pipes
}

async function empty({ folder, except }: RawPipesOptions): Promise<void> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const inUse = new Set(except.flatMap((name) => Object.values(filesOf(name))))
  const unused = (await fs.readdir(folder)).filter((name) => !inUse.has(name))
  await Promise.all(unused.map((name) => fs.rm(path.join(folder, name), { recursive: true, force: true })))
}

const filesOf = (name: string): Record<Stream, string> => ({ stdout: `${name}.1`, stderr: `${name}.2` })

class NamedRawPipes implements RawPipes {
  readonly #options: RawPipesOptions
  /** Those of the agent before this one have other names. */
  readonly #life = randomBytes(6).toString('hex')
  readonly #free: string[] = []
  #made = 0
  #refilling: Promise<void> | undefined
  #retryAt = 0

  constructor(options: RawPipesOptions) {
    this.#options = options
  }

  take(): RawPair | undefined {
    if (this.#free.length === 0) this.#makeNow()
    const name = this.#free.pop()
    if (this.#free.length < BATCH / 2) void this.refill()
    return name === undefined ? undefined : this.#open(name)
  }

  /** Never rejects. */
  refill(): Promise<void> {
    this.#refilling ??= this.#make().finally(() => (this.#refilling = undefined))
    return this.#refilling
  }

  async #make(): Promise<void> {
    if (performance.now() < this.#retryAt) return
    const names = this.#names()
    try {
      await makePipes(this.#filesOf(names))
      this.#free.push(...names)
    } catch (error) {
      this.#failed(error)
    }
  }

  /** More processes start at once than there are pairs. */
  #makeNow(): void {
    if (performance.now() < this.#retryAt) return
    const names = this.#names()
    try {
      makePipesNow(this.#filesOf(names))
      this.#free.push(...names)
    } catch (error) {
      this.#failed(error)
    }
  }

  #failed(error: unknown): void {
    this.#retryAt = performance.now() + RETRY_MS
    this.#options.onFailure(error)
  }

  #names(): string[] {
    return Array.from({ length: BATCH }, () => `${this.#life}.${(this.#made += 1)}`)
  }

  #filesOf(names: readonly string[]): string[] {
    return names.flatMap((name) => Object.values(this.#paths(name)))
  }

  #paths(name: string): Record<Stream, string> {
    const { stdout, stderr } = filesOf(name)
    return { stdout: path.join(this.#options.folder, stdout), stderr: path.join(this.#options.folder, stderr) }
  }

  #open(name: string): RawPair | undefined {
    const { stdout, stderr } = this.#paths(name)
    const opened: OwnPipe[] = []
    try {
      for (const file of [stdout, stderr]) opened.push(openBoth(file))
      const [out, err] = opened as [OwnPipe, OwnPipe]
      return { name, stdout: out, stderr: err }
    } catch (error) {
      for (const pipe of opened) discard(pipe)
      this.remove(name)
      this.#failed(error)
      return undefined
    }
  }

  find(name: string): Record<Stream, Readable> {
    const { stdout, stderr } = this.#paths(name)
    const out = readPipe(stdout)
    try {
      return { stdout: out, stderr: readPipe(stderr) }
    } catch (error) {
      out.destroy()
      throw error
    }
  }

  remove(name: string): void {
    for (const file of Object.values(this.#paths(name))) rmSync(file, { force: true })
  }

  async close(): Promise<void> {
    await this.#refilling
    await fs.rm(this.#options.folder, { recursive: true, force: true })
  }
}

/** The program's end can read as well as write: so the pipe never is without a reader. */
function openBoth(file: string): OwnPipe {
  const given = openSync(file, constants.O_RDWR)
  try {
    return { given, read: readPipe(file) }
  } catch (error) {
    closeSync(given)
    throw error
  }
}

function discard({ given, read }: OwnPipe): void {
  closeSync(given)
  read.destroy()
}
