import assert from 'node:assert/strict'
import { execFile, spawn } from 'node:child_process'
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

const HEADER_BYTES = 13
const WAIT_MS = 60_000
const CODES: Record<string, FrameName> = {
  r: 'ready',
  b: 'begun',
  o: 'out',
  e: 'err',
  p: 'phase',
  l: 'log',
  c: 'children',
  R: 'returned',
  T: 'threw',
  i: 'idle',
  j: 'journal',
  k: 'park',
  L: 'live',
  B: 'blocked',
  J: 'rejoin',
}

let built: Promise<string> | undefined

/** The runtime as an agent builds it, once for a test file. */
export function runtimeFolder(): Promise<string> {
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

export interface Seen {
  name: FrameName
  text: string
}

export interface Host {
  /** Everything it has said so far. */
  seen: Seen[]
  /** The next frame of that name that nobody has waited for yet. */
  next(name: FrameName): Promise<string>
  nextOp(): Promise<JournalOp>
  parked(): Promise<ParkReport>
  send(message: ProgramMessage): void
  /** As an agent does: makes it look for messages. */
  poke(): void
  start(more?: Partial<StartMessage>): void
  exited: Promise<unknown>
  /** As when the agent is killed: both pipes have no other end any more. */
  leave(): void
  /** As the next agent does: what is sent and heard goes over named pipes from here on. */
  comeFor(folder: string): Promise<void>
}

/** A real process that executes `body` as the body of `run(input, context)`. */
export async function aHost(t: TestContext, body: string): Promise<Host> {
  const folder = await runtimeFolder()
  const home = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-host-'))
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

  const child = spawn(process.execPath, [path.join(folder, 'host.cjs'), 'now'], {
    stdio: ['ignore', 'inherit', 'inherit', 'pipe', 'pipe'],
    cwd: home,
    env: {},
  })
  const [, , , frames, firstMessages] = child.stdio as [null, null, null, Readable, Duplex]
  let messages: Writable = firstMessages
  const exited = new Promise((resolve) => {
    child.once('exit', (code, signal) => resolve(signal ?? code))
  })
  t.after(async () => {
    child.kill('SIGKILL')
    await exited
    messages.destroy()
    await fs.rm(home, { recursive: true, force: true })
  })
  messages.on('error', () => {})
  const take = (frame: Seen) => {
    seen.push(frame)
    rung.resolve()
    rung = Promise.withResolvers<void>()
  }
  const seen: Seen[] = []
  const taken = new Set<Seen>()
  let rung = Promise.withResolvers<void>()
  collect(frames, take)

  async function ring(ms: number): Promise<void> {
    const late = Promise.withResolvers<void>()
    const timer = setTimeout(late.resolve, ms)
    await Promise.race([rung.promise, late.promise])
    clearTimeout(timer)
  }

  const next = async (name: FrameName) => {
    const deadline = performance.now() + WAIT_MS
    for (;;) {
      const found = seen.find((frame) => frame.name === name && !taken.has(frame))
      if (found) {
        taken.add(found)
        return found.text
      }
      const left = deadline - performance.now()
      assert.ok(left > 0, `no frame ${name} within ${WAIT_MS} ms, but ${JSON.stringify(seen.slice(-20))}`)
      await ring(left)
    }
  }
  const send = (message: ProgramMessage) => {
    const bytes = Buffer.from(JSON.stringify(message))
    const length = Buffer.alloc(4)
    length.writeUInt32LE(bytes.length)
    messages.write(Buffer.concat([length, bytes]))
  }
  return {
    seen,
    next,
    nextOp: async () => JSON.parse(await next('journal')) as JournalOp,
    parked: async () => JSON.parse(await next('park')) as ParkReport,
    send,
    poke: () => child.kill('SIGUSR2'),
    start: (more) => send({ ...aStart(bundleFile, home), ...more }),
    exited,
    leave: () => {
      frames.destroy()
      firstMessages.destroy()
    },
    comeFor: async (rendezvous) => {
      const [framesFile, messagesFile] = [path.join(rendezvous, 'frames.1'), path.join(rendezvous, 'messages.1')]
      await promisify(execFile)('mkfifo', [framesFile, messagesFile])
      // Opening for one direction only waits for the other end.
      const [reads, writes] = [openSync(framesFile, 'r+'), openSync(messagesFile, 'r+')]
      const incoming = new net.Socket({ fd: reads, readable: true, writable: false })
      const outgoing = new net.Socket({ fd: writes, readable: false, writable: true })
      t.after(() => [incoming, outgoing].forEach((socket) => socket.destroy()))
      await fs.writeFile(path.join(rendezvous, 'ready.1'), '')
      collect(incoming, take)
      messages = outgoing
    },
  }
}

function sourceOf(body: string): string {
  const names = 'context, log, phase, requestInput, sleep, step, workflows, CancelledError, RunFailedError'
  return `import { ${names} } from 'windlass'\nexport async function run(input: any, given: any) {\n${body}\n}\nvoid [${names}]\n`
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
    journal: [],
    entries: 0,
    replay: false,
  }
}

function collect(frames: Readable, onFrame: (frame: Seen) => void): void {
  let held = Buffer.alloc(0)
  frames.on('error', () => {})
  frames.on('data', (chunk: Buffer) => {
    held = Buffer.concat([held, chunk])
    while (held.length >= HEADER_BYTES) {
      const end = HEADER_BYTES + held.readUInt32LE(1)
      if (held.length < end) return
      const name = CODES[String.fromCharCode(held.readUInt8(0))]
      assert.ok(name, 'a frame of no known name')
      onFrame({ name, text: held.toString('utf8', HEADER_BYTES, end) })
      held = held.subarray(end)
    }
  })
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
