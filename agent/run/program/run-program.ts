import { existsSync } from 'node:fs'
import path from 'node:path'
import type { CancelMessage, ProgramMessage } from '@windlass/shared/wire/program.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { createComputeClock } from './compute-clock.ts'
import { sweep } from '../../os/end-processes.ts'
import { endingOf, neverBegan, notStarted, workspaceFull, type Stop } from './host-endings.ts'
import type { HostProcess } from '../hosts/host-process.ts'
import type { Exit } from '../../os/process.ts'
import { bytesOf, endedByBrokenLine, type Frame } from './frames.ts'
import type { ProgramStart, RunningProgram, RunPlace, TakenBack } from './program.ts'
import { createMarking } from './marking.ts'
import { whereaboutsOf } from './whereabouts.ts'
import { createProgramOutput, type OnEvents, type ProgramEvent } from './output.ts'
import { leftoversIn, mismatchIn, parkIn, thrownIn } from './reports.ts'
import { createStanding } from './standing.ts'
import { startMessage, whatOutputNeeds } from './start-message.ts'
import { createTimers } from './timers.ts'
import { within } from './within.ts'

// A waiting process may die in the moment it is chosen. As long as nothing of the program has begun, another one takes over.
const TRIES = 3
const EXIT_MS = 2_000
const IDLE_MS = 2_000
const BLOCKED_MS = 60_000
// Of the time that is left: it can have used up most of it before, and the machine may be slower now.
const REPLAY_TIMEOUTS = 2
// Out of time is out of time: the grace is for closing files, not for going on.
const TIMEOUT_GRACE_MS = 5_000
const LOST_IN_REPLAY = 'the replay of what the run had done before did not come to an end in time'
type Workplace = HostProcess & { workspace: string }

/** `taken`: its process is there, and goes on where the agent before this one had heard it. */
export function runProgram(
  place: RunPlace,
  start: ProgramStart,
  onEvents: OnEvents,
  taken?: TakenBack,
): RunningProgram {
  const timers = createTimers()
  const graceMs = Math.min(start.graceMs, TIMEOUT_GRACE_MS)
  const onTimeout = () => ask({ why: 'timed-out', reason: `after ${start.timeoutMs} ms`, graceMs })
  const clock = createComputeClock(start.timeoutMs, onTimeout, { ...taken, time: place.time })
  const standing = createStanding({ ...start, clock, known: taken && { ...taken.mark, heard: taken.heard } })
  // What it replays, it has computed before: the timeout does not count it, and it must come to an end all the same.
  const replayMs = Math.max(place.replayMs, REPLAY_TIMEOUTS * start.timeoutMs)
  if (start.replay) timers.later(replayMs, () => standing.isReplaying && abandon('lost', LOST_IN_REPLAY))
  const idle = Promise.withResolvers<string[]>()
  let over = Promise.withResolvers<void>()
  let host: HostProcess | undefined
  let stop: Stop | undefined
  let outcome: Ending | undefined
  let hasBegun = taken !== undefined
  let hasStarted = false
  const started = Promise.withResolvers<void>()
  let usedChildren = false
  let isForced = false
  const isAsked = () => stop?.why === 'cancelled' || stop?.why === 'timed-out'
  const isWanted = () => stop?.why !== 'lost'
  /** Said before the program has begun: another process may have to take over. */
  const early: ProgramMessage[] = []

  function clearTimers(): void {
    timers.clear()
    clock.disarm()
  }

  function tell(message: ProgramMessage): void {
    host?.send(message)
    if (hasBegun) host?.wake()
    else early.push(message)
  }

  function inform(message: ProgramMessage): void {
    if (!outcome) tell(message)
  }

  function end(how: Ending): void {
    if (outcome) return
    outcome = how
    clearTimers()
    over.resolve()
  }

  function ask(message: Omit<CancelMessage, 't'>): void {
    if (stop || outcome) return
    stop = { why: message.why }
    clearTimers()
    timers.later(message.graceMs / 2, () => host?.pid !== undefined && host.enclosure.askOthers(host.pid))
    timers.later(message.graceMs, () => {
      isForced = true
      host?.kill()
    })
    tell({ t: 'cancel', ...message })
  }

  function abandon(why: 'lost' | 'evicted', reason: string): void {
    stop = { why, reason }
    isForced = true
    clearTimers()
    host?.kill()
    over.resolve()
  }

  function onFrame(frame: Frame, at: number): ProgramEvent[] {
    switch (frame.name) {
      case 'begun':
        hasBegun = true
        if (early.length > 0) host?.wake()
        return []
      case 'children':
        usedChildren = true
        return []
      case 'returned':
        return ended({ how: 'returned', outputText: frame.payload.toString() }, at)
      case 'threw':
        return ended({ how: 'threw', error: thrownIn(frame) }, at)
      case 'idle':
        idle.resolve(leftoversIn(frame))
        return []
      case 'park':
        return onPark(frame, at)
      case 'blocked':
        end({ how: 'blocked', mismatch: mismatchIn(frame) })
        isForced = true
        host?.kill()
        return []
      default:
        return standing.take(frame, at)
    }
  }

  /** One that was asked to stop is not left alone any more. */
  function onPark(frame: Frame, at: number): ProgramEvent[] {
    const report = parkIn(frame)
    if (stop || outcome) return []
    const events = standing.park(report, at)
    if (events.length > 0) place.parked()
    return events
  }

  /** A parked program that ends by itself had gone on before. */
  function ended(how: Ending, at: number): ProgramEvent[] {
    const events = outcome || isAsked() ? [] : standing.resume(at)
    end(how)
    return events
  }

  const output = createProgramOutput({
    onEvents,
    onFrame,
    isReplaying: () => standing.isReplaying,
    ...whatOutputNeeds(start),
    known: taken && { ...taken.mark, ...taken.known },
    pause: () => host?.pause(),
    resume: () => host?.resume(),
    failed: (error) => abandon('lost', `the run's events could not be kept: ${String(error)}`),
  })

  const marking = createMarking(() => ({ ...output.framesTold(), isParked: standing.isParked }))

  async function live(): Promise<Ending> {
    const bundleFile = path.join(start.bundleDir, 'main.mjs')
    try {
      if (!existsSync(bundleFile))
        return notStarted(hasStarted, `the bundle is incomplete: there is no ${path.basename(bundleFile)} in it`)
      if (taken) return verdict(await execute(bundleFile))
      await place.ready()
      for (let triesLeft = TRIES - 1; ; triesLeft--) {
        // It was cut off before there was a process.
        if (stop) return verdict({ failed: 'nobody wants it any more' })
        const exit = await execute(bundleFile)
        if (hasBegun || outcome || stop || 'failed' in exit) return verdict(exit)
        if (triesLeft === 0) return neverBegan(exit)
      }
    } finally {
      clearTimers()
    }
  }

  /** In one process, to its end or until it is free for others. */
  async function execute(bundleFile: string): Promise<Exit> {
    over = Promise.withResolvers<void>()
    const own = taken?.host ?? place.take(start)
    hasStarted ||= own.pid !== undefined
    started.resolve()
    host = own
    begin(own, bundleFile)
    const unwatch = place.watchSize(own, (limitMb) => fail(workspaceFull(limitMb)))
    const exit = own.exit.then((how) => {
      // The last frames may still be on their way.
      over.resolve()
      return how
    })
    await over.promise
    unwatch()
    const stays = start.process === 'reuse' && !stop && outcome !== undefined && (await canStay(own))
    if (stays && place.keep(start, own)) return { exitCode: 0, signal: null }
    return putToEnd(own, exit)
  }

  /** The agent ends it, and says so among what the program has told. */
  function fail(how: Ending): void {
    output.add(ended(how, Date.now()))
    host?.kill()
  }

  function begin(own: Workplace, bundleFile: string): void {
    own.runs += 1
    own.listen({
      frames: (frames) => {
        output.frames(frames)
        marking.told(bytesOf(frames))
      },
      raw: (stream, chunk) => output.raw(stream, chunk),
      broken: (error) => fail(endedByBrokenLine(error)),
    })
    if (taken) return own.send({ t: 'resend', from: taken.mark.frames })
    own.send(startMessage(start, { bundleFile, workspace: own.workspace, rejoin: place.rejoin(own) }))
    for (const message of early) own.send(message)
  }

  /** Whether the process is as clean as it was, so that another run can follow. All of its output has been taken then. */
  async function canStay(own: Workplace): Promise<boolean> {
    const leftovers = await within(IDLE_MS, Promise.race([idle.promise, own.exit.then(() => ['its exit'])]))
    if (leftovers === undefined || leftovers.length > 0) return false
    const { marker, workspace, enclosure, pid = 0 } = own
    if (enclosure.hasCompany(pid, { marker, workspace, isLikely: usedChildren })) return false
    // What went past the frames lies in its pipes already: the next turn of the loop reads it.
    await new Promise(setImmediate)
    await new Promise(setImmediate)
    output.flush()
    await output.taken()
    own.listen(null)
    return !stop && !own.hasExited()
  }

  /** Waits for the process, ends what is left of it, and reads all it had to say. */
  async function putToEnd(own: Workplace, exit: Promise<Exit>): Promise<Exit> {
    if (outcome && start.process === 'fresh') await within(EXIT_MS, exit)
    if (!own.hasExited()) {
      isForced ||= !outcome
      own.kill()
    }
    const how = await exit
    let isClean = await own.enclosure.end(own.pid)
    await output.drained(own.framesRead, isWanted)
    // A program that said how it ended also said whether it started others. Of any other we know nothing.
    const isOpen = own.pid !== undefined && !own.enclosure.isSealed
    if (isOpen && (usedChildren || !outcome || isForced)) isClean = (await sweep(own)) && isClean
    await output.drained(own.allRead, isWanted)
    own.listen(null)
    own.release()
    if (!isRepeated()) output.flush()
    await within(BLOCKED_MS, output.taken())
    place.gone(own, isClean)
    return how
  }

  function verdict(exit: Exit): Ending {
    const facts = { stop, outcome, isForced, hasStarted, timeoutMs: start.timeoutMs, wasTaken: taken !== undefined }
    return endingOf(exit, { ...facts, enclosure: host?.enclosure })
  }

  /** Whether a replay will print again what is left of a line. */
  function isRepeated(): boolean {
    if (outcome && outcome.how !== 'blocked') return false
    return standing.isReplaying || outcome !== undefined || (standing.isParked && !isAsked())
  }

  return {
    cancel: ({ why, reason, graceMs = start.graceMs }) => ask({ why, reason, graceMs }),
    // What it has said already stays true; only its tidy end is cut short.
    kill: (reason) => (outcome ? host?.kill() : abandon('lost', reason)),
    evict: (reason) => {
      if (!stop && !outcome) abandon('evicted', reason)
    },
    renewToken: (token) => inform({ t: 'token', token }),
    news: (completions) => standing.news(completions),
    wake: (completions) => {
      if (stop || outcome) return
      marking.add(() => output.add(standing.resume(Date.now())))
      standing.given(completions)
      tell({ t: 'wake', completions: [...completions] })
    },
    kept: (count) => inform({ t: 'kept', count }),
    computeMs: () => standing.computeMs(),
    isParked: () => standing.isParked,
    started: started.promise,
    hasStarted: () => hasStarted,
    isolation: () => host?.enclosure.effective ?? null,
    whereabouts: () => (stop || outcome ? undefined : whereaboutsOf(host, clock, standing)),
    follow: (note) => marking.follow(note),
    leftLines: () => (isRepeated() ? output.leftLines() : undefined),
    done: live().catch((error: unknown) =>
      notStarted(hasStarted, `the program could not be executed: ${String(error)}`),
    ),
  }
}
