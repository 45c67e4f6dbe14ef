import { totalmem } from 'node:os'
import { type OwnUser, ownUser } from '../tools/own-user.ts'
import { type Bounds, type Child, startChild } from '../tools/child.ts'
import { createToolPool, type Outcome, type ToolPool } from '../tools/pool.ts'
import type { Log } from '@windlass/shared/log.ts'
import { DESCRIPTOR_FILE, type Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { piecesOf } from './file-pieces.ts'
import type { Bundle } from './bundle.ts'
import { DeployError, type DeployErrorDetail } from './deploy-error.ts'
import { descriptorOf } from './descriptor-of.ts'
import type { IoSchemas } from './io-schema-derive.ts'

/** The files come before, in pieces. */
export type CompileJob = null
export type Compiled = { descriptor: Descriptor; bundle: Bundle; schemas: IoSchemas }
export type CompileAnswer = { compiled: Compiled } | { refused: { message: string; detail: DeployErrorDetail } }

/**
 * Reads descriptors, bundles and reads types in processes of their own: what customers send may take for ever, and all
 * memory. A descriptor of 22 KB takes 50 ms; read in here, those of 30 refused deploys at once kept all others waiting
 * for 3 s.
 */
export interface Compiler {
  /** Throws a DeployError for what the customer has to mend. One org's jobs do not keep those of others out. */
  compile(org: string, files: readonly SourceFile[]): Promise<Compiled>
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
    pool = await openPool(options)
    if (closed) await pool.close()
    return pool
  }

  return {
    async compile(org, files) {
      // Not before the first deploy: the trial of the user costs as much as a small one.
      opening ??= open().catch((error: unknown) => {
        // Of this deploy only: the next one tries again.
        opening = undefined
        throw error
      })
      const outcome = await (await opening).run({ org, payload: null, pieces: piecesOf(files) })
      const answer = answerOf(outcome, files)
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
const TRIAL: SourceFile[] = [
  { path: DESCRIPTOR_FILE, content: '{ "slug": "trial" }' },
  { path: 'index.ts', content: 'export const run = () => 1' },
]

type CompileChild = Child<CompileJob, CompileAnswer>

/** By program: what was found out holds for as long as this process. */
const settled = new Map<string, OwnUser>()

const BOUNDS = { cpuMs: 15_000, wallMs: 60_000, heapMb: 768, stackKb: STACK_KB }

/** With a user of their own for the processes, where that works. The process that has shown it is the pool's first. */
async function openPool(options: CompilerOptions): Promise<Pool> {
  const { log, program = PROGRAM } = options
  const bounds = {
    cpuMs: options.typesMs ?? BOUNDS.cpuMs,
    wallMs: options.wallMs ?? BOUNDS.wallMs,
    heapMb: options.heapMb ?? BOUNDS.heapMb,
    dataMb: options.dataMb ?? dataMb(),
    stackKb: BOUNDS.stackKb,
  }
  const { own, first } = await settle(program, bounds)
  const pool = createToolPool<CompileJob, CompileAnswer>({
    name: 'deploys',
    entry: program,
    ...bounds,
    idleMs: options.idleMs ?? IDLE_MS,
    // The second is for another org than that of the first.
    most: 2,
    mostWaiting: options.mostWaiting ?? 20,
    ...(own.user && { user: own.user }),
    ...(first && { first }),
    ...(log && { log }),
  })
  if (own.user) log?.('deploys.confined', { by: 'user', uid: own.user.uid })
  else log?.('deploys.confined', { by: 'process', why: own.why })
  return pool
}

async function settle(program: URL, bounds: Bounds): Promise<{ own: OwnUser; first?: CompileChild }> {
  const known = settled.get(program.href)
  if (known) return { own: known }
  const esbuild = new URL(import.meta.resolve('esbuild'))
  const own = await ownUser('deploys', [program, esbuild, new URL(import.meta.resolve('typescript-api'))])
  const tried = own.user ? await tryUser(own.user, program, bounds) : { own }
  settled.set(program.href, tried.own)
  return tried
}

async function tryUser(user: NonNullable<Bounds['user']>, program: URL, bounds: Bounds) {
  try {
    const child: CompileChild = await startChild(program, { ...bounds, user })
    const outcome = await child.ask(null, { pieces: piecesOf(TRIAL) })
    if (outcome.kind === 'answer' && 'compiled' in outcome.answer) return { own: { user }, first: child }
    await child.end()
    const why = `a program that was built as user ${user.uid} for a trial ended with: ${JSON.stringify(outcome)}`
    return { own: { user: undefined, why } }
  } catch (error) {
    return { own: { user: undefined, why: (error as Error).message } }
  }
}

/** A quarter of the machine's or container's memory; 24 MiB of code make esbuild use 1.5 GiB. */
function dataMb(): number {
  const limit = process.constrainedMemory()
  const bytes = limit > 0 ? Math.min(limit, totalmem()) : totalmem()
  return Math.min(2048, Math.max(1024, Math.round(bytes / 4 / 1024 / 1024)))
}

function answerOf(outcome: Outcome<CompileAnswer>, files: readonly SourceFile[]): CompileAnswer {
  if (outcome.kind === 'answer') return outcome.answer
  if (outcome.kind === 'too slow') throw tooCostly('time', files)
  if (outcome.of === 'memory') throw tooCostly('memory', files)
  throw new Error(`the process of a deploy ended with ${outcome.how} in the middle of a job`)
}

function tooCostly(what: string, files: readonly SourceFile[]): DeployError {
  // It had been read over there, and its process is gone. Its org has just waited for seconds, so this is rare.
  const { entry } = descriptorOf(files)
  const message =
    `building ${entry} takes too much ${what}: give the input and the return value of \`run\` plainer types, ` +
    'or deploy fewer or smaller files'
  return new DeployError(message, { path: `files/${entry}`, file: entry })
}
