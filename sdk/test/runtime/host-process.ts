import { execFile, spawn, type ChildProcess } from 'node:child_process'
import { openSync, rmSync } from 'node:fs'
import fs from 'node:fs/promises'
import net from 'node:net'
import os from 'node:os'
import path from 'node:path'
import type { Duplex, Readable, Writable } from 'node:stream'
import type { TestContext } from 'node:test'
import { promisify } from 'node:util'
import type { EntryIdentity, JournalOp, JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { FrameName, ParkReport, ProgramMessage, StartMessage } from '@windlass/shared/wire/program.ts'
import { build } from 'esbuild'
import { Frames } from './host-frames.ts'

let built: Promise<string> | undefined

/** The runtime as an agent builds it, once for a test file. */
function runtimeFolder(): Promise<string> {
  return (built ??= buildRuntime())
}

async function buildRuntime(): Promise<string> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-runtime-'))
  // A hook that is made within a test would be that test's.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))
  const sdk = path.resolve(import.meta.dirname, '../../index.ts')
  const script = path.resolve(import.meta.dirname, '../../../agent/run/build-runtime.ts')
  await promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', script, sdk, folder])
  return folder
}

/** A real process that executes `body` as the body of `run(input, context)`. */
export async function aHost(t: TestContext, body: string): Promise<Host> {
  const folder = await runtimeFolder()
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-host-'))
  const bundleFile = await bundle(home, body)
  const child = spawn(process.execPath, [path.join(folder, 'host.cjs'), 'now'], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
    cwd: home,
    env: {},
  })
  const host = new Host(t, child, aStart(bundleFile, home))
  t.after(async () => {
    child.kill('SIGKILL')
    await host.exited
    host.leave()
    await fs.rm(home, { recursive: true, force: true })
  })
  return host
}

/** A program in a process of its own, and the agent's end of its two pipes. */
export class Host {
  readonly exited: Promise<unknown>
  readonly #t: TestContext
  readonly #start: StartMessage
  readonly #frames = new Frames()
  readonly #firstFrames: Readable
  readonly #firstMessages: Duplex
  /** Where messages go. */
  #messages: Writable

  constructor(t: TestContext, child: ChildProcess, start: StartMessage) {
    this.#t = t
    this.#start = start
    const [, , , frames, messages] = child.stdio as [null, null, null, Readable, Duplex]
    this.#firstFrames = frames
    this.#firstMessages = this.#messages = messages
    this.exited = new Promise((resolve) => {
      child.once('exit', (code, signal) => resolve(signal ?? code))
    })
    messages.on('error', () => {})
    this.#frames.collectFrom(frames)
  }

  /** Everything it has said so far. */
  get seen() {
    return this.#frames.seen
  }

  /** The next frame of that name that nobody has waited for yet. */
  next(name: FrameName): Promise<string> {
    return this.#frames.next(name)
  }

  async nextOp(): Promise<JournalOp> {
    return JSON.parse(await this.next('journal')) as JournalOp
  }

  async parked(): Promise<ParkReport> {
    return JSON.parse(await this.next('park')) as ParkReport
  }

  start({ journal, ...more }: Partial<StartMessage> & { journal?: JournalRecord[] } = {}): void {
    if (journal) this.send({ t: 'journal', records: journal })
    this.send({ ...this.#start, ...more })
  }

  send(message: ProgramMessage): void {
    const bytes = Buffer.from(JSON.stringify(message))
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    this.#messages.write(Buffer.concat([length, bytes]))
  }

  /** As when the agent is killed: both pipes have no other end any more. */
  leave(): void {
    this.#firstFrames.destroy()
    this.#firstMessages.destroy()
  }

  /** As the next agent does: what is sent and heard goes over named pipes from here on. */
  async comeFor(rendezvous: string): Promise<void> {
    const [framesFile, messagesFile] = [path.join(rendezvous, 'frames.1'), path.join(rendezvous, 'messages.1')]
    await promisify(execFile)('mkfifo', [framesFile, messagesFile])
    // Opening for one direction only waits for the other end.
    const [reads, writes] = [openSync(framesFile, 'r+'), openSync(messagesFile, 'r+')]
    const incoming = new net.Socket({ fd: reads, readable: true, writable: false })
    const outgoing = new net.Socket({ fd: writes, readable: false, writable: true })
    this.#t.after(() => [incoming, outgoing].forEach((socket) => socket.destroy()))
    await fs.writeFile(path.join(rendezvous, 'ready.1'), '')
    this.#frames.collectFrom(incoming)
    this.#messages = outgoing
  }
}

async function bundle(home: string, body: string): Promise<string> {
  const bundleFile = path.join(home, 'main.mjs')
  await fs.mkdir(path.join(home, 'tmp'))
  await fs.writeFile(path.join(home, 'index.ts'), sourceOf(body))
  await build({
    entryPoints: [path.join(home, 'index.ts')],
    outfile: bundleFile,
    bundle: true,
    format: 'esm',
    platform: 'node',
    sourcemap: 'external',
    external: ['windlass'],
    logLevel: 'silent',
  })
  return bundleFile
}

function sourceOf(body: string): string {
  const names =
    'context, log, phase, requestInput, sleep, step, workflows, AgentStoppedError, CancelledError, RunFailedError'
  const run = `export async function run(input: any, given: any) {\n${body}\n}`
  return `import { ${names} } from 'windlass'\n${run}\nvoid [${names}]\n`
}

function aStart(bundleFile: string, workspace: string): StartMessage {
  return {
    t: 'start',
    runId: 'run_test',
    attempt: 1,
    epoch: 1,
    org: 'acme',
    workflow: { slug: 'demo', version: 1 },
    environment: null,
    inputText: '{}',
    bundleFile,
    workspace,
    variables: {},
    token: 'a-token',
    stays: false,
    outputBytes: 1024 * 1024,
    eventDataBytes: 64 * 1024,
    entries: 0,
    replay: false,
  }
}

/** An entry as the coordinator hands it to a new process. */
export function aRecord(entry: EntryIdentity, more: Partial<JournalRecord> = {}): JournalRecord {
  const fresh = {
    attempt: 1,
    state: 'open',
    result: null,
    drifted: false,
    delivered: null,
    after: 0,
    idle: false,
    completed: null,
  } as const
  return { ...entry, ...fresh, ...more }
}

/** The next entry that somebody else is to complete. */
export async function opened(host: Host) {
  for (;;) {
    const op = await host.nextOp()
    if (op.op === 'open') return op
  }
}

export function ops(host: Host): JournalOp[] {
  return host.seen.filter(({ name }) => name === 'journal').map(({ text }) => JSON.parse(text) as JournalOp)
}

/** What a journal has of all that it has said: what it was given is done, with that result or null. */
export function recordsOf(host: Host): JournalRecord[] {
  const said = ops(host)
  const deliveries = said.flatMap((op) => (op.op === 'deliver' ? op.list : []))
  return said.flatMap((op) => {
    if (op.op !== 'open' && op.op !== 'close') return []
    const [order, , after, idle] = deliveries.find(([, n]) => n === op.entry.n) ?? []
    if (order === undefined) return [aRecord(op.entry)]
    const result = op.op === 'close' ? op.result : 'null'
    const given = { completed: order, delivered: order, after: after!, idle: idle === 1 }
    return [aRecord(op.entry, { state: 'done', result, ...given })]
  })
}
