import { type ChildProcess, spawn } from 'node:child_process'
import { closeSync, mkdirSync, openSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { FINAL_CODES as AGENT_FINAL_CODES } from '@windlass/agent/exit-codes.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { noRoomText } from './failure.ts'
import { cutLog } from './log-pieces.ts'
import type { Teller } from './tell.ts'
import { type Alive, createWatch, isAlive } from './watch.ts'

export interface PartOptions {
  name: string
  /** Module to run, as an import specifier. */
  module: string
  /** Arguments of Node, before the module. */
  nodeArgs: string[]
  env: NodeJS.ProcessEnv
  /** Where its log goes; undefined: to our stderr. */
  logFile: string | undefined
  tell: Teller
  /** How long it may take to stop by itself. */
  stopMs: number
  /** Whether `ready` outlasts an end after which it is started again; the caller sets a deadline of its own. */
  isPatient?: boolean
  /** Interval of the looks of the watchdog, and at the size of the log. */
  lookMs?: number
  /** From how many bytes on the log begins anew. */
  pieceBytes?: number
  /** Called with the process of each start. */
  onStart?(pid: number | undefined): void
  /** Called with each message, except those that say it is alive. */
  onMessage?(message: unknown): void
}

/**
 * A process of the instance. It is started again when it dies; it ends by itself when we die, for it watches our
 * channel.
 */
export interface Part {
  /** Settles with its first message, or throws when it ends before that (`isPatient`: when it ends for good). */
  ready: Promise<unknown>
  pid(): number | undefined
  stop(): Promise<void>
  /** Ends it as fast as it can, also while it is being stopped: what it has started must not outlive it. */
  end(): Promise<void>
}

/** A third signal makes an agent kill its programs; without it, its reaper would keep them for the next agent. */
const END_SIGNALS = 3
/** Signals that come too soon after one another are delivered as one. */
const END_SIGNAL_MS = 100
const END_MS = 3000

const BACKOFF = { firstMs: 200, capMs: 10_000 }
/** After so long up, an end is news and not one more failure in a row. */
const SETTLED_MS = 30_000
/** Interval of looks; the coordinator reports as often. */
const LOOK_MS = 1000
const SILENT_LOOKS = 30
/**
 * Codes that starting again will not change: wrong settings, refused by the coordinator; the agent has more of them.
 */
const FINAL_CODES = new Set([77, 78, ...AGENT_FINAL_CODES])

/**
 * Arguments of Node for a part, wherever it is started. The coordinator's young objects live shorter than a batch: with
 * half of Node's 16 MiB for each of three spaces its peak under load is 44 MiB lower, and no request is slower. Some 50
 * MiB of its heap are in use; Node lets that grow fourfold before it collects. At 2.4 times the peak is 80 MiB lower,
 * for 3 % of the coordinator's CPU (`npm run bench -- --only coordinator`).
 */
const NODE_ARGS: Partial<Record<string, readonly string[]>> = {
  '@windlass/coordinator/main.ts': ['--max-semi-space-size=8', '--heap-growing-percent=140'],
}

/**
 * Settings of the C library for a part, unless they are given. Each thread that allocates gets an arena of its own, up
 * to eight a core, and what one has freed no other takes: with two, the coordinator's peak under load is 10 MiB lower.
 */
const LIBC: Partial<Record<string, Record<string, string>>> = {
  '@windlass/coordinator/main.ts': { MALLOC_ARENA_MAX: '2' },
}

export function startPart(options: PartOptions): Part {
  const stopping = new AbortController()
  let child: ChildProcess | undefined
  let failures = 0
  const { promise: ready, resolve, reject } = Promise.withResolvers<unknown>()
  ready.catch(() => {
    // Told by whoever awaits it; a part that is stopped before it was ready is nobody's failure.
  })

  const loop = (async () => {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      try {
        child = launch(options)
        options.onStart?.(child.pid)
      } catch (error) {
        // Its log cannot be opened: the disk is full, most likely.
        if (!options.isPatient) reject(error)
        options.tell.fail(`The ${options.name} could not be started: ${(error as Error).message}`)
        await pause(backoffMs(++failures, BACKOFF), stopping.signal)
        continue
      }
      const watched = watch(child, options)
      child.on('message', (message) => {
        if (isAlive(message)) return watched.heard(message)
        resolve(message)
        options.onMessage?.(message)
      })
      const ending = await ended(child)
      watched.stop()
      if (stopping.signal.aborted) return
      const sentence = [
        `The ${options.name} ended (${ending.signal ?? `exit code ${ending.code}`}).`,
        ...(options.logFile ? [`Its log: ${options.logFile}`, noRoomText(dirname(options.logFile))] : []),
      ]
        .filter(Boolean)
        .join(' ')
      const isFinal = ending.code !== null && FINAL_CODES.has(ending.code)
      if (isFinal || !options.isPatient) reject(new Error(sentence))
      if (isFinal) return options.tell.fail(sentence)
      failures = performance.now() - startedAt > SETTLED_MS ? 0 : failures + 1
      options.tell.say(`${sentence} Starting it again.`)
      await pause(backoffMs(failures, BACKOFF), stopping.signal)
    }
  })()

  const cutting = cutWhenLong(options)
  void loop.finally(() => clearInterval(cutting))

  return {
    ready,
    pid: () => child?.pid,
    async stop() {
      stopping.abort()
      if (child && child.exitCode === null && child.signalCode === null) {
        child.kill('SIGTERM')
        const patience = new AbortController()
        await Promise.race([loop, pause(options.stopMs, patience.signal)])
        patience.abort()
        if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL')
      }
      await loop
    },
    async end() {
      stopping.abort()
      const over = new AbortController()
      void loop.finally(() => over.abort())
      for (let times = 0; times < END_SIGNALS && !over.signal.aborted; times++) {
        child?.kill('SIGTERM')
        await pause(END_SIGNAL_MS, over.signal)
      }
      await pause(END_MS, over.signal)
      if (!over.signal.aborted) child?.kill('SIGKILL')
      await loop
    },
  }
}

function launch({ module, nodeArgs, env, logFile }: PartOptions): ChildProcess {
  if (logFile) mkdirSync(dirname(logFile), { recursive: true })
  const out = logFile ? openSync(logFile, 'a', 0o600) : 'inherit'
  try {
    // Detached: Ctrl-C in a terminal reaches us alone, and we stop the parts one after the other.
    return spawn(
      process.execPath,
      [...(NODE_ARGS[module] ?? []), ...nodeArgs, fileURLToPath(import.meta.resolve(module))],
      {
        env: { ...LIBC[module], ...env },
        stdio: ['ignore', 'ignore', out, 'ipc'],
        detached: true,
      },
    )
  } finally {
    if (typeof out === 'number') closeSync(out)
  }
}

function cutWhenLong({ logFile, lookMs = LOOK_MS, pieceBytes }: PartOptions): NodeJS.Timeout | undefined {
  return logFile === undefined ? undefined : setInterval(() => cutLog(logFile, pieceBytes), lookMs).unref()
}

/** Kills a part whose event loop stands still: it would neither serve nor hear a signal. */
function watch(child: ChildProcess, { name, tell, lookMs = LOOK_MS }: PartOptions) {
  const watch = createWatch(SILENT_LOOKS)
  const timer = setInterval(() => {
    if (!watch.look()) return
    clearInterval(timer)
    tell.say(
      `The ${name} said nothing for ${(SILENT_LOOKS * lookMs) / 1000} s: its event loop stands still. Killing it.`,
    )
    child.kill('SIGKILL')
  }, lookMs)
  timer.unref()
  return { heard: (message: Alive) => watch.heard(message), stop: () => clearInterval(timer) }
}

function ended(child: ChildProcess): Promise<{ code: number | null; signal: string | null }> {
  return new Promise((resolve) => {
    child.once('error', () => resolve({ code: null, signal: 'could not be started' }))
    child.once('exit', (code, signal) => resolve({ code, signal }))
  })
}
