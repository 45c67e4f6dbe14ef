import { randomBytes } from 'node:crypto'
import { closeSync, fchownSync, rmSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import type { Readable } from 'node:stream'
import { makePipes, makePipesNow, openInput, openLastingOutput, openOutput, readPipe } from '../../os/named-pipes.ts'
import type { OwnInput, OwnPipe, OwnPipes } from '../../os/process.ts'

/**
 * Pipes for the descriptors of programs. Those for 1 and 2 keep their names where the next agent could take the program
 * back, so that it finds them, and the program has both of their ends: while no agent is there, what it writes waits in
 * them, and nobody is told that they are broken.
 */
export interface ProgramPipes {
  /** For a new process, and under which name the next agent finds them; undefined where there are none to be had. */
  take(options: TakeOptions): (OwnPipes & { name: string | undefined }) | undefined
  /** Where those of a process of the agent before this one are. */
  filesOf(name: string): string[]
  find(name: string): Record<Stream, Readable>
  /** Nobody needs them any more. */
  remove(name: string): void
  close(): Promise<void>
}

interface TakeOptions {
  mayLast: boolean
  /** The user of the process, where it has one of its own: scripts open `/dev/stdout` and `/dev/stderr`. */
  owner: number | undefined
}

type Stream = 'stdout' | 'stderr'

interface ProgramPipesOptions {
  folder: string
  /** The next agent could take programs back. */
  mayLast: boolean
  /** Still in use by programs of the agent before this one. */
  except: readonly string[]
  onFailure: (error: unknown) => void
}

/** One call makes pipes for so many processes, and the next one follows when half of them are taken. */
const BATCH = 32
const RETRY_MS = 30_000

/** On a full disk there may be none: that is no reason not to start. */
export async function openProgramPipes(options: ProgramPipesOptions): Promise<ProgramPipes> {
  const pipes = new NamedPipes(options)
  try {
    await empty(options)
    await pipes.refill()
  } catch (error) {
    options.onFailure(error)
  }
  return pipes
}

async function empty({ folder, except }: ProgramPipesOptions): Promise<void> {
  await fs.mkdir(folder, { recursive: true, mode: 0o700 })
  const inUse = new Set(except.flatMap((name) => Object.values(filesOf(name))))
  const unused = (await fs.readdir(folder)).filter((name) => !inUse.has(name))
  await Promise.all(unused.map((name) => fs.rm(path.join(folder, name), { recursive: true, force: true })))
}

const filesOf = (name: string): Record<Stream, string> => ({ stdout: `${name}.1`, stderr: `${name}.2` })
/** Nobody looks for these by their names. */
const linesOf = (name: string) => ({ frames: `${name}.3`, messages: `${name}.4` })

class NamedPipes implements ProgramPipes {
  readonly #options: ProgramPipesOptions
  /** Those of the agent before this one have other names. */
  readonly #life = randomBytes(6).toString('hex')
  readonly #free: string[] = []
  #made = 0
  #refilling: Promise<void> | undefined
  #retryAt = 0

  constructor(options: ProgramPipesOptions) {
    this.#options = options
  }

  take({ mayLast, owner }: TakeOptions): ReturnType<ProgramPipes['take']> {
    if (this.#free.length === 0) this.#makeNow()
    const name = this.#free.pop()
    if (this.#free.length < BATCH / 2) void this.refill()
    return name === undefined ? undefined : this.#open(name, mayLast && this.#options.mayLast, owner)
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

  /** More processes start at once than there are pipes for. */
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
    return names.flatMap((name) => Object.values({ ...filesOf(name), ...linesOf(name) }).map((file) => this.#at(file)))
  }

  #at(file: string): string {
    return path.join(this.#options.folder, file)
  }

  #open(name: string, isLasting: boolean, owner: number | undefined): ReturnType<ProgramPipes['take']> {
    const files = { ...filesOf(name), ...linesOf(name) }
    const opened: (OwnPipe | OwnInput)[] = []
    const noted = <P extends OwnPipe | OwnInput>(pipe: P): P => {
      opened.push(pipe)
      return pipe
    }
    try {
      const openRaw = isLasting ? openLastingOutput : openOutput
      const pipes = {
        stdout: noted(openRaw(this.#at(files.stdout))),
        stderr: noted(openRaw(this.#at(files.stderr))),
        frames: noted(openOutput(this.#at(files.frames))),
        messages: noted(openInput(this.#at(files.messages))),
      }
      if (owner !== undefined) for (const { given } of [pipes.stdout, pipes.stderr]) handOver(given, owner)
      this.#removeFiles(isLasting ? linesOf(name) : files)
      return { name: isLasting ? name : undefined, ...pipes }
    } catch (error) {
      for (const pipe of opened) discard(pipe)
      this.#removeFiles(files)
      this.#failed(error)
      return undefined
    }
  }

  filesOf(name: string): string[] {
    return Object.values(filesOf(name)).map((file) => this.#at(file))
  }

  find(name: string): Record<Stream, Readable> {
    const { stdout, stderr } = filesOf(name)
    const out = readPipe(this.#at(stdout))
    try {
      return { stdout: out, stderr: readPipe(this.#at(stderr)) }
    } catch (error) {
      out.destroy()
      throw error
    }
  }

  remove(name: string): void {
    this.#removeFiles(filesOf(name))
  }

  #removeFiles(files: Record<string, string>): void {
    for (const file of Object.values(files)) rmSync(this.#at(file), { force: true })
  }

  async close(): Promise<void> {
    await this.#refilling
    await fs.rm(this.#options.folder, { recursive: true, force: true })
  }
}

/** Where that user is unknown to the file system, programs have their pipes all the same, and open them by no name. */
function handOver(fd: number, owner: number): void {
  try {
    fchownSync(fd, owner, owner)
  } catch {
    // As it was.
  }
}

function discard(pipe: OwnPipe | OwnInput): void {
  closeSync(pipe.given)
  const ours = 'read' in pipe ? pipe.read : pipe.write
  ours.destroy()
}
