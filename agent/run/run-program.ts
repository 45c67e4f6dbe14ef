import { existsSync } from 'node:fs'
import path from 'node:path'
import { MOST_LEVELS, nestsWithin } from '@windlass/shared/json-nesting.ts'
import type { CancelMessage, IdleReport, ThrownError } from '@windlass/shared/wire/program.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { askChildren, endGroup, findStrays, signal, sweep } from './end-processes.ts'
import type { HostProcess } from './host-process.ts'
import type { Exit } from './process.ts'
import { endedByBrokenLine, type Frame } from './program-frames.ts'
import { createProgramOutput, parsePayload, type OnEvents } from './program-output.ts'
import { within } from './within.ts'
import type { Workspaces } from './workspace.ts'

export interface ProgramStart {
  runId: string
  attempt: number
  epoch: number
  org: string
  workflow: { slug: string; version: number }
  environment: string | null
  /** The input as JSON text. */
  inputText: string
  /** Folder that holds `main.mjs`. */
  bundleDir: string
  variables: Record<string, string>
  token: string
  timeoutMs: number
  graceMs: number
  process: 'fresh' | 'reuse'
  /** Processes serve one another's runs only where this is equal: org, version and environment. */
  reuseKey: string
  /** Largest output in bytes of JSON. */
  outputBytes?: number
}

export interface RunningProgram {
  /** Asks the program to stop, and makes it after the grace. Repeated calls change nothing. */
  cancel(reason: string, graceMs?: number): void
  /** Ends it now, without asking and without a report. */
  kill(reason: 'fenced' | 'shutdown'): void
  /** Hands the program a fresh per-run token. */
  renewToken(token: string): void
  /** Resolves when everything has been read and no process of the run is left. Never rejects. */
  done: Promise<Ending>
}

/** What a run needs of the place where it is executed. */
export interface RunPlace {
  workspaces: Workspaces
  take(start: ProgramStart): HostProcess
  /** Gives a process back for other runs; false when it has served long enough. */
  keep(start: ProgramStart, host: HostProcess): boolean
  /** The process is gone, and `isClean` says whether all of its descendants are. */
  gone(host: HostProcess, isClean: boolean): void
}

const OUTPUT_BYTES = 1024 * 1024
// A waiting process may die in the moment it is chosen. As long as nothing of the program has begun, another one takes over.
const TRIES = 3
const EXIT_MS = 2_000
const IDLE_MS = 2_000
const PIPES_MS = 2_000
const BLOCKED_MS = 60_000
// Out of time is out of time: the grace is for closing files, not for going on.
const TIMEOUT_GRACE_MS = 5_000

type Stop = { why: 'cancelled' | 'timed-out' } | { why: 'lost'; reason: string }

export function runProgram(place: RunPlace, start: ProgramStart, onEvents: OnEvents): RunningProgram {
  const timers = new Set<NodeJS.Timeout>()
  const idle = Promise.withResolvers<string[]>()
  let over = Promise.withResolvers<void>()
  let host: HostProcess | undefined
  let stop: Stop | undefined
  let outcome: Ending | undefined
  let hasBegun = false
  let usedChildren = false
  let isForced = false

  function later(ms: number, act: () => void): void {
    const timer = setTimeout(
      () => {
        timers.delete(timer)
        act()
      },
      Math.min(ms, 2 ** 31 - 1),
    )
    timers.add(timer)
  }

  function clearTimers(): void {
    for (const timer of timers) clearTimeout(timer)
    timers.clear()
  }

  function end(how: Ending): void {
    if (outcome) return
    outcome = how
    clearTimers()
    over.resolve()
  }

  function killGroup(): void {
    if (host?.pid !== undefined) signal(-host.pid, 'SIGKILL')
  }

  function ask(message: Omit<CancelMessage, 't'>): void {
    if (stop || outcome) return
    stop = { why: message.why }
    clearTimers()
    later(message.graceMs / 2, () => host?.pid !== undefined && askChildren(host.pid))
    later(message.graceMs, () => {
      isForced = true
      killGroup()
    })
    host?.send({ t: 'cancel', ...message })
    if (hasBegun) host?.wake()
  }

  function lose(reason: string): void {
    stop = { why: 'lost', reason }
    isForced = true
    killGroup()
    over.resolve()
  }

  function onFrame(frame: Frame): void {
    if (frame.name === 'begun') {
      hasBegun = true
      if (stop) host?.wake()
    } else if (frame.name === 'children') usedChildren = true
    else if (frame.name === 'returned') end({ how: 'returned', outputText: frame.payload.toString() })
    else if (frame.name === 'threw') end({ how: 'threw', error: thrownIn(frame) })
    else if (frame.name === 'idle') idle.resolve(leftoversIn(frame))
  }

  const output = createProgramOutput({
    onEvents,
    pause: () => host?.pause(),
    resume: () => host?.resume(),
    failed: (error) => lose(`the run's events could not be kept: ${String(error)}`),
  })

  async function live(): Promise<Ending> {
    const bundleFile = path.join(start.bundleDir, 'main.mjs')
    if (!existsSync(bundleFile))
      return { how: 'lost', reason: `the bundle is incomplete: there is no ${path.basename(bundleFile)} in it` }
    const workspace = place.workspaces.take()
    const graceMs = Math.min(start.graceMs, TIMEOUT_GRACE_MS)
    later(start.timeoutMs, () => ask({ why: 'timed-out', reason: `after ${start.timeoutMs} ms`, graceMs }))
    try {
      for (let triesLeft = TRIES - 1; ; triesLeft--) {
        const exit = await execute(bundleFile, workspace)
        const neverBegan = !hasBegun && !outcome && !stop && !('failed' in exit)
        if (!neverBegan || triesLeft === 0) return verdict(exit)
      }
    } finally {
      clearTimers()
      void place.workspaces.giveBack(workspace)
    }
  }

  /** In one process, to its end or until it is free for others. */
  async function execute(bundleFile: string, workspace: string): Promise<Exit> {
    over = Promise.withResolvers<void>()
    const own = place.take(start)
    host = own
    begin(own, bundleFile, workspace)
    const exit = own.exit.then((how) => {
      // The last frames may still be on their way.
      over.resolve()
      return how
    })
    await over.promise
    const stays = start.process === 'reuse' && !stop && outcome !== undefined && (await canStay(own, workspace))
    if (stays && place.keep(start, own)) return { exitCode: 0, signal: null }
    return putToEnd(own, exit, workspace)
  }

  function begin(own: HostProcess, bundleFile: string, workspace: string): void {
    own.runs += 1
    own.listen({
      frames: (frames) => {
        for (const frame of frames) onFrame(frame)
        output.frames(frames)
      },
      raw: (stream, chunk) => output.raw(stream, chunk),
      broken: (error) => {
        end(endedByBrokenLine(error))
        killGroup()
      },
    })
    const { runId, attempt, epoch, org, workflow, environment, inputText, variables, token } = start
    const stays = start.process === 'reuse'
    const outputBytes = start.outputBytes ?? OUTPUT_BYTES
    const facts = { runId, attempt, epoch, org, workflow, environment, inputText, variables, token }
    own.send({ t: 'start', ...facts, bundleFile, workspace, stays, outputBytes })
  }

  /** Whether the process is as clean as it was, so that another run can follow. All of its output has been taken then. */
  async function canStay(own: HostProcess, workspace: string): Promise<boolean> {
    const leftovers = await within(IDLE_MS, Promise.race([idle.promise, own.exit.then(() => ['its exit'])]))
    if (leftovers === undefined || leftovers.length > 0) return false
    if (usedChildren && findStrays({ marker: own.marker, workspace }, own.pid).length > 0) return false
    // What went past the frames lies in its pipes already: the next turn of the loop reads it.
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    output.flush()
    await output.taken()
    own.listen(null)
    return !stop && !own.hasExited()
  }

  /** Waits for the process, ends what is left of it, and reads all it had to say. */
  async function putToEnd(own: HostProcess, exit: Promise<Exit>, workspace: string): Promise<Exit> {
    if (outcome && start.process === 'fresh') await within(EXIT_MS, exit)
    if (!own.hasExited()) {
      isForced ||= !outcome
      killGroup()
    }
    const how = await exit
    let isClean = own.pid === undefined || (await endGroup(own.pid))
    await drained(own.framesRead)
    // A program that said how it ended also said whether it started others. Of any other we know nothing.
    if (own.pid !== undefined && (usedChildren || !outcome || isForced)) {
      isClean = (await sweep({ marker: own.marker, workspace })) && isClean
    }
    await drained(own.allRead)
    own.listen(null)
    own.release()
    output.flush()
    await within(BLOCKED_MS, output.taken())
    place.gone(own, isClean)
    return how
  }

  /** Waits until pipes are read to their end; as long as nobody takes the events, that is not the program's fault. */
  async function drained(read: Promise<void>): Promise<void> {
    const deadline = performance.now() + BLOCKED_MS
    const isRead = () =>
      within(
        PIPES_MS,
        read.then(() => true),
      )
    while (!(await isRead())) {
      if (stop?.why === 'lost' || !output.isBlocked() || performance.now() > deadline) return
    }
  }

  function verdict(exit: Exit): Ending {
    if (stop?.why === 'lost') return { how: 'lost', reason: stop.reason }
    if (stop?.why === 'timed-out') return { how: 'timed-out', timeoutMs: start.timeoutMs }
    if (stop?.why === 'cancelled') return { how: 'cancelled', forced: isForced }
    if (outcome) return outcome
    if ('failed' in exit) return { how: 'lost', reason: `the program's process could not be started: ${exit.failed}` }
    return exit.signal ? { how: 'killed', signal: exit.signal } : { how: 'exited', exitCode: exit.exitCode ?? 0 }
  }

  return {
    cancel: (reason, graceMs = start.graceMs) => ask({ why: 'cancelled', reason, graceMs }),
    // What it has said already stays true; only its tidy end is cut short.
    kill: (reason) => (outcome ? killGroup() : lose(reason)),
    renewToken: (token) => {
      host?.send({ t: 'token', token })
      if (hasBegun && !outcome) host?.wake()
    },
    done: live().catch((error: unknown): Ending => ({
      how: 'lost',
      reason: `the program could not be executed: ${String(error)}`,
    })),
  }
}

// The runtime sends far less. What is larger or deeper would never get through to the coordinator, and be sent for ever.
const TEXT_CHARACTERS = 32 * 1024
const DETAIL_BYTES = 64 * 1024

/** The runtime writes these, but a program can write in its place: what is reported has the right shape at least. */
function thrownIn(frame: Frame): ThrownError {
  const { name, message, stack, code, detail }: Partial<ThrownError> = parsePayload(frame)
  const error: ThrownError = { name: textOr(name, 'Error'), message: textOr(message, 'The program failed.') }
  if (typeof stack === 'string') error.stack = stack.slice(0, TEXT_CHARACTERS)
  if (typeof code === 'string') error.code = code.slice(0, TEXT_CHARACTERS)
  const isSmall = frame.payload.length <= DETAIL_BYTES && nestsWithin(detail, MOST_LEVELS)
  if (typeof detail === 'object' && detail !== null) error.detail = isSmall ? detail : { truncated: true }
  return error
}

function leftoversIn(frame: Frame): string[] {
  const { leftovers }: Partial<IdleReport> = parsePayload(frame)
  return Array.isArray(leftovers) ? leftovers : ['an unreadable report']
}

const textOr = (value: unknown, otherwise: string) =>
  typeof value === 'string' ? value.slice(0, TEXT_CHARACTERS) : otherwise
