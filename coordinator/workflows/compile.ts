import { totalmem } from 'node:os'
import { type OwnUser, ownUser } from '../tools/own-user.ts'
import { type Bounds, startChild } from '../tools/child.ts'
import { createToolPool, type Outcome, type ToolPool } from '../tools/pool.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { piecesOf } from './file-pieces.ts'
import type { Bundle } from './bundle.ts'
import { DeployError, type DeployErrorDetail } from './deploy-error.ts'
import type { IoSchemas } from './io-schema-derive.ts'

/** The files come before, in pieces. */
export type CompileJob = { entry: string }
export type Compiled = { bundle: Bundle; schemas: IoSchemas }
export type CompileAnswer = { compiled: Compiled } | { refused: { message: string; detail: DeployErrorDetail } }

/** Bundles and reads types in processes of their own: what customers send may take for ever, and all memory. */
export interface Compiler {
  /** Throws a DeployError for what the customer has to mend. One org's jobs do not keep those of others out. */
  compile(org: string, files: readonly SourceFile[], entry: string): Promise<Compiled>
  /** Processes that are up. */
  awake(): number
  close(): Promise<void>
}

export interface CompilerOptions {
  log?: Log
  /** Program of the processes. Tests use one that not everybody can read. */
  program?: URL
  /** Processor time of the type checker for one program. */
  typesMs?: number
  /** Time on the clock for bundling, and again for the types. */
  wallMs?: number
  /** A process ends when it had nothing to do for this long. */
  idleMs?: number
  heapMb?: number
  dataMb?: number
  /** Deploys of an org that may wait; a stampede is told to come back. */
  mostWaiting?: number
}

/**
 * Time that an idle process stays up. A new one costs a deploy a second, and developers save every few minutes; an idle
 * one holds about 230 MiB.
 */
const IDLE_MS = 5 * 60_000
/** TypeScript recurses: with the 1 MB of a process it would refuse programs that were taken in a thread. */
const STACK_KB = 3900

export function createCompiler(options: CompilerOptions = {}): Compiler {
  let closed = false
  let pool: Pool | undefined
  let opening: Promise<Pool> | undefined

  async function open(): Promise<Pool> {
    const user = await settleUser(options)
    pool = openPool(user ? { ...options, user } : options)
    if (closed) await pool.close()
    return pool
  }

  return {
    async compile(org, files, entry) {
      // Not before the first deploy: the trial of the user costs as much as a small one.
      opening ??= open().catch((error: unknown) => {
        // Of this deploy only: the next one tries again.
        opening = undefined
        throw error
      })
      const outcome = await (await opening).run({ org, payload: { entry }, pieces: piecesOf(files) })
      const answer = answerOf(outcome, entry)
      if ('compiled' in answer) return answer.compiled
      throw new DeployError(answer.refused.message, answer.refused.detail)
    },
    awake: () => pool?.awake() ?? 0,
    async close() {
      closed = true
      const opened = await opening?.catch(() => undefined)
      await opened?.close()
    },
  }
}

type Pool = ToolPool<CompileJob, CompileAnswer>

const PROGRAM = new URL('./compile-process.ts', import.meta.url)

/** A small program that is really built: what it takes to reach every file is known by trying only. */
const TRIAL: SourceFile[] = [{ path: 'index.ts', content: 'export const run = () => 1' }]

/** By program: what was found out holds for as long as this process. */
const settled = new Map<string, Promise<OwnUser>>()

async function settleUser({ log, program = PROGRAM }: CompilerOptions): Promise<Bounds['user']> {
  const own = await (settled.get(program.href) ?? settle(program))
  if (own.user) log?.('deploys.confined', { by: 'user', uid: own.user.uid })
  else log?.('deploys.confined', { by: 'process', why: own.why })
  return own.user
}

function settle(program: URL): Promise<OwnUser> {
  const trying = triedUser(program)
  settled.set(program.href, trying)
  trying.catch(() => settled.delete(program.href))
  return trying
}

async function triedUser(program: URL): Promise<OwnUser> {
  const esbuild = new URL(import.meta.resolve('esbuild'))
  const own = await ownUser([program, esbuild, new URL(import.meta.resolve('typescript-api'))])
  const why = own.user && (await whyNot(own.user, program))
  return why === undefined ? own : { user: undefined, why }
}

/** Why the program does not work for this user, if it does not. */
async function whyNot(user: Bounds['user'] & object, program: URL): Promise<string | undefined> {
  try {
    const child = await startChild<CompileJob, CompileAnswer>(program, { ...BOUNDS, dataMb: dataMb(), user })
    const outcome = await child.ask({ entry: TRIAL[0]!.path }, { pieces: piecesOf(TRIAL) })
    await child.end()
    if (outcome.kind === 'answer' && 'compiled' in outcome.answer) return undefined
    return `a program that was built as user ${user.uid} for a trial ended with: ${JSON.stringify(outcome)}`
  } catch (error) {
    return (error as Error).message
  }
}

const BOUNDS = { cpuMs: 15_000, wallMs: 60_000, heapMb: 768, stackKb: STACK_KB }

function openPool(options: CompilerOptions & Pick<Bounds, 'user'>): Pool {
  return createToolPool<CompileJob, CompileAnswer>({
    name: 'deploys',
    entry: options.program ?? PROGRAM,
    cpuMs: options.typesMs ?? BOUNDS.cpuMs,
    wallMs: options.wallMs ?? BOUNDS.wallMs,
    heapMb: options.heapMb ?? BOUNDS.heapMb,
    dataMb: options.dataMb ?? dataMb(),
    stackKb: BOUNDS.stackKb,
    idleMs: options.idleMs ?? IDLE_MS,
    // The second is for another org than that of the first.
    most: 2,
    mostWaiting: options.mostWaiting ?? 20,
    ...(options.user && { user: options.user }),
    ...(options.log && { log: options.log }),
  })
}

/** A quarter of the machine's or container's memory; 24 MiB of code make esbuild use 1.5 GiB. */
function dataMb(): number {
  const limit = process.constrainedMemory()
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return Math.min(2048, Math.max(1024, Math.round(bytes / 4 / 1024 / 1024)))
}

function answerOf(outcome: Outcome<CompileAnswer>, entry: string): CompileAnswer {
  if (outcome.kind === 'answer') return outcome.answer
  if (outcome.kind === 'too slow') throw tooCostly('time', entry)
  if (outcome.of === 'memory') throw tooCostly('memory', entry)
  throw new Error(`the process of a deploy ended with ${outcome.how} in the middle of a job`)
}

function tooCostly(what: string, entry: string): DeployError {
  const message =
    `building ${entry} takes too much ${what}: give the input and the return value of \`run\` plainer types, ` +
    'or deploy fewer or smaller files'
  return new DeployError(message, { path: `files/${entry}`, file: entry })
}
