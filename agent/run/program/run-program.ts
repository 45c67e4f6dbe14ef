import { existsSync } from 'node:fs'
import path from 'node:path'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { Exit } from '../../os/process.ts'
import type { HostProcess } from '../hosts/host-process.ts'
import { createComputeClock, type ComputeClock, TIMEOUT_GRACE_MS } from './compute-clock.ts'
import { goesOn, isAsked, mayWait, type Course } from './course.ts'
import { bytesOf, endedByBrokenLine, type Frame } from './frames.ts'
import { endingOf, neverBegan, notStarted, workspaceFull } from './host-endings.ts'
import { isLeftClean, isRepeated, putToEnd, type Leaving } from './leaving.ts'
import { createMarking, type Marking } from './marking.ts'
import { createProgramOutput, type LineSplitters, type OnEvents, type ProgramEvent } from './output.ts'
import type { NoteMark, ProgramStart, RunningProgram, RunContext } from './program.ts'
import type { StopOrder, TakenBack, Whereabouts, Workplace } from './program.ts'
import { idleIn, mismatchIn, parkIn, thrownIn } from './reports.ts'
import { createPhase, type Phase } from './phase.ts'
import { framesOf, startMessage, stopMessage, whatOutputNeeds } from './start-message.ts'
import { Steering } from './steering.ts'
import { whereaboutsOf } from './whereabouts.ts'

// A waiting process may die in the moment it is chosen: until something of the program has begun, another takes over.
const TRIES = 3
// Of the time that is left: it can have used up most of it before, and the machine may be slower now.
const REPLAY_TIMEOUTS = 2
const LOST_IN_REPLAY = 'the replay of what the run had done before did not come to an end in time'

export function runProgram(...given: ConstructorParameters<typeof Program>): RunningProgram {
  return new Program(...given)
}

/** A program in its process, or in one after the other. What is decided about its end stands in its course. */
class Program implements RunningProgram {
  readonly done: Promise<Ending>
  readonly #context: RunContext
  readonly #start: ProgramStart
  readonly #taken: TakenBack | undefined
  readonly #clock: ComputeClock
  readonly #steering: Steering
  readonly #phase: Phase
  readonly #output: ReturnType<typeof createProgramOutput>
  readonly #marking: Marking
  readonly #began = Promise.withResolvers<void>()
  readonly started = this.#began.promise
  /** What the program has left behind, by its own word. */
  readonly #idle = Promise.withResolvers<ReturnType<typeof idleIn>>()
  #hasStarted = false

  /** `taken`: its process is there, and goes on where the agent before this one had heard it. */
  constructor(context: RunContext, start: ProgramStart, onEvents: OnEvents, taken?: TakenBack) {
    this.#context = context
    this.#start = start
    this.#taken = taken
    const graceMs = Math.min(start.graceMs, TIMEOUT_GRACE_MS)
    const onTimeout = () => this.#outOfTime({ why: 'timed-out', reason: `after ${start.timeoutMs} ms`, graceMs })
    this.#clock = createComputeClock(start.timeoutMs, onTimeout, { ...taken, time: context.time })
    this.#steering = new Steering(this.#clock, taken !== undefined, context.journalMs)
    const known = taken && { ...taken.mark, heard: taken.heard }
    this.#phase = createPhase({ ...start, clock: this.#clock, known })
    this.#limitReplay()
    this.#output = this.#openOutput(onEvents)
    const stand = () => ({ ...this.#output.framesRead(), isParked: this.#phase.isParked })
    this.#marking = createMarking(stand, (events) => this.#output.add(events))
    this.done = this.#runToEnd().catch((error: unknown) =>
      notStarted(this.#hasStarted, `the program could not be executed: ${String(error)}`),
    )
  }

  /** What it replays, it has computed before: the timeout does not count it, and it must end all the same. */
  #limitReplay(): void {
    const { replay, timeoutMs } = this.#start
    if (!replay) return
    const replayMs = Math.max(this.#context.replayMs, REPLAY_TIMEOUTS * timeoutMs)
    this.#steering.later(replayMs, () => this.#phase.isReplaying && this.#abandon('lost', LOST_IN_REPLAY))
  }

  #openOutput(onEvents: OnEvents): ReturnType<typeof createProgramOutput> {
    const taken = this.#taken
    return createProgramOutput({
      onEvents,
      onFrame: (frame, at) => this.#onFrame(frame, at),
      isReplaying: () => this.#phase.isReplaying,
      ...whatOutputNeeds(this.#start),
      known: taken && { ...taken.mark, ...taken.known },
      startedAt: taken?.startedAt,
      pause: () => this.#steering.host?.pause(),
      resume: () => this.#steering.host?.resume(),
      failed: (error) => this.#abandon('lost', `the run's events could not be kept: ${String(error)}`),
    })
  }

  async #runToEnd(): Promise<Ending> {
    const bundleFile = path.join(this.#start.bundleDir, 'main.mjs')
    try {
      if (!existsSync(bundleFile))
        return notStarted(this.#hasStarted, `the bundle is incomplete: there is no ${path.basename(bundleFile)} in it`)
      if (this.#taken) return this.#verdict(await this.#execute(bundleFile))
      await Promise.race([this.#context.ready(), this.#steering.ending])
      for (let triesLeft = TRIES - 1; ; triesLeft--) {
        // It was cut off before there was a process.
        if (this.#course.stop) return this.#verdict({ failed: 'nobody wants it any more' })
        const exit = await this.#execute(bundleFile)
        if (this.#course.hasBegun || !goesOn(this.#course) || 'failed' in exit) return this.#verdict(exit)
        if (triesLeft === 0) return neverBegan(exit)
      }
    } finally {
      this.#steering.disarm()
    }
  }

  /** In one process, to its end or until it is free for others. */
  async #execute(bundleFile: string): Promise<Exit> {
    const own = this.#taken?.host ?? this.#context.take(this.#start)
    this.#hasStarted ||= own.pid !== undefined
    this.#began.resolve()
    const over = this.#steering.enter(own)
    this.#begin(own, bundleFile)
    const unwatch = this.#context.watchSize(own, (limitMb) => this.#fail(workspaceFull(limitMb)))
    const exit = own.exit.then((how) => {
      // The last frames may still be on their way.
      over.resolve()
      return how
    })
    await over.promise
    unwatch()
    if (await this.#isHandedOn(own)) return { exitCode: 0, signal: null }
    const ended = await putToEnd(own, exit, this.#leaving())
    this.#context.gone(own, ended.isClean)
    return ended.exit
  }

  #begin(own: Workplace, bundleFile: string): void {
    own.runs += 1
    own.listen({
      mostBytes: framesOf(this.#start),
      frames: (frames) => {
        this.#output.frames(frames)
        this.#marking.given(bytesOf(frames))
      },
      raw: (stream, chunk) => this.#marking.add(this.#output.raw(stream, chunk), this.#output.isInSecret()),
      broken: (error) => this.#fail(endedByBrokenLine(error)),
    })
    if (this.#taken) return own.send({ t: 'resend', from: this.#taken.mark.frames })
    const locations = { bundleFile, workspace: own.workspace, rejoin: this.#context.rejoin(own) }
    this.#steering.start(startMessage(this.#start, locations), this.#start.journal)
  }

  #onFrame(frame: Frame, at: number): ProgramEvent[] {
    switch (frame.name) {
      case 'begun':
      case 'children':
        this.#steering.step({ t: frame.name })
        return []
      case 'returned':
        return this.#ended({ how: 'returned', outputText: frame.payload.toString() }, at)
      case 'threw':
        return this.#ended({ how: 'threw', error: thrownIn(frame) }, at)
      case 'idle':
        this.#idle.resolve(idleIn(frame))
        return []
      case 'park':
        return this.#onPark(frame, at)
      case 'blocked':
        this.#steering.step({ t: 'blocked', how: { how: 'blocked', mismatch: mismatchIn(frame, this.#phase) } })
        return []
      default:
        return this.#phase.take(frame, at)
    }
  }

  /** One that was asked to stop is not left alone any more. */
  #onPark(frame: Frame, at: number): ProgramEvent[] {
    const report = parkIn(frame)
    if (!mayWait(this.#course)) return []
    const events = this.#phase.park(report, at)
    if (events.length > 0) this.#context.parked()
    return events
  }

  /** A parked program that ends by itself had gone on before. */
  #ended(how: Ending, at: number): ProgramEvent[] {
    const events = this.#course.outcome || isAsked(this.#course) ? [] : this.#phase.resume(at)
    this.#steering.step({ t: 'ended', how })
    return events
  }

  /** The agent ends it, and says so among what the program has told. */
  #fail(how: Ending): void {
    this.#output.add(this.#ended(how, Date.now()))
    this.#steering.host?.kill()
  }

  /** Whether the process is free for others: then it has served this run, and is not ended. */
  async #isHandedOn(own: Workplace): Promise<boolean> {
    const { stop, outcome } = this.#course
    // One that was taken back has been with another agent: what it holds open of that is not known.
    if (this.#start.process !== 'reuse' || this.#taken || stop || !outcome) return false
    return (await isLeftClean(own, this.#leaving())) && this.#context.keep(this.#start, own)
  }

  #leaving(): Leaving {
    return {
      process: this.#start.process,
      output: this.#output,
      idle: this.#idle.promise,
      onStrays: (strays) => this.#context.strayed(this.#start.runId, strays),
      course: () => this.#course,
      isRepeated: () => isRepeated(this.#course, this.#phase),
      endProcess: () => this.#steering.step({ t: 'overdue' }),
    }
  }

  get #course(): Course {
    return this.#steering.course
  }

  #verdict(exit: Exit): Ending {
    const { timeoutMs } = this.#start
    const facts = { hasStarted: this.#hasStarted, timeoutMs, wasTaken: this.#taken !== undefined }
    return endingOf(exit, { ...this.#course, ...facts, enclosure: this.#steering.host?.enclosure })
  }

  /** It may undo now what it did, and nothing else says so if its agent is killed before it has ended. */
  #outOfTime(order: StopOrder): void {
    this.#marking.add([{ at: Date.now(), channel: 'resume', type: 'resume', data: 'timed-out' }])
    this.#start.save?.()
    this.cancel(order)
  }

  #abandon(why: 'lost' | 'evicted', reason: string): void {
    this.#steering.step({ t: 'abandoned', why, reason })
  }

  cancel({ why, reason, graceMs = this.#start.graceMs }: StopOrder): void {
    this.#steering.step({ t: 'asked', message: stopMessage({ why, reason, graceMs }, this.#taken) })
  }

  kill(reason: string): void {
    // What it has said already stays true; only its tidy end is cut short.
    if (this.#course.outcome) this.#steering.host?.kill()
    else this.#abandon('lost', reason)
  }

  evict(reason: string): void {
    if (mayWait(this.#course)) this.#abandon('evicted', reason)
  }

  renewToken(token: string): void {
    this.#steering.inform({ t: 'token', token })
  }

  news(completions: readonly Completion[]): Completion[] {
    return this.#steering.isReading() ? this.#phase.news(completions) : []
  }

  wake(completions: readonly Completion[]): void {
    if (!mayWait(this.#course)) return
    this.#marking.add(this.#phase.resume(Date.now()))
    this.#phase.given(completions)
    this.#steering.tell({ t: 'wake', completions: [...completions] })
  }

  confirm(count: number): void {
    this.#steering.inform({ t: 'kept', count })
  }

  saidAt(ending: Ending): number | undefined {
    return ending === this.#course.outcome ? this.#output.endedAt() : undefined
  }

  computeMs(): number {
    return this.#phase.computeMs()
  }

  isParked(): boolean {
    return this.#phase.isParked
  }

  hasStarted(): boolean {
    return this.#hasStarted
  }

  host(): HostProcess | undefined {
    return this.#steering.host
  }

  whereabouts(): Whereabouts | undefined {
    return goesOn(this.#course) ? whereaboutsOf(this.#steering.host, this.#clock, this.#phase) : undefined
  }

  follow(note: NoteMark): void {
    this.#marking.follow(note)
  }

  leftLines(): LineSplitters | undefined {
    return isRepeated(this.#course, this.#phase) ? this.#output.leftLines() : undefined
  }
}
