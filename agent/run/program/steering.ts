import type { ProgramMessage, StartMessage } from '@windlass/shared/wire/program.ts'
import type { HostProcess } from '../hosts/host-process.ts'
import type { ComputeClock } from './compute-clock.ts'
import {
  goesOn,
  newCourse,
  step,
  type Course,
  type CourseAction,
  type CourseEvent,
  type StopMessage,
} from './course.ts'
import { saysAll } from './frames.ts'
import { letGo, type RecordedJournal } from './recorded-journal.ts'
import { createTimers } from './timers.ts'

/** A program that computes and never waits reads nothing, and may have had a thousand children. */
const MOST_UNREAD_BYTES = 32 * 1024 * 1024
/** So often it is looked whether a process has read on. */
const LOOKS = 2

/** Has the course of a program and the line to its process, and does what each step of the course asks for. */
export class Steering {
  readonly #timers = createTimers()
  readonly #clock: Pick<ComputeClock, 'disarm'>
  /** Said before the program has begun: another process may have to take over. */
  #early: ProgramMessage[] = []
  readonly #journalMs: number
  readonly #begun = Promise.withResolvers<void>()
  readonly #ending = Promise.withResolvers<void>()
  #over = Promise.withResolvers<void>()
  #host: HostProcess | undefined
  #journal: RecordedJournal | undefined
  #course: Course

  /** A program that was taken back has begun already. */
  constructor(clock: Pick<ComputeClock, 'disarm'>, hasBegun: boolean, journalMs: number) {
    this.#clock = clock
    this.#journalMs = journalMs
    this.#course = newCourse(hasBegun)
  }

  get course(): Course {
    return this.#course
  }

  /**
   * Resolves when it has come to an end, or somebody makes one: before it has a process, too, as there may be no user
   * for it for long.
   */
  get ending(): Promise<void> {
    return this.#ending.promise
  }

  /** The last process that it was given. */
  get host(): HostProcess | undefined {
    return this.#host
  }

  /** From now on it is in this process. Answers what is resolved when nothing more is waited for from it there. */
  enter(host: HostProcess): PromiseWithResolvers<void> {
    this.#host = host
    this.#over = Promise.withResolvers<void>()
    return this.#over
  }

  step(event: CourseEvent): void {
    const [course, actions] = step(this.#course, event)
    this.#course = course
    if (course.hasBegun) this.#hasBegun()
    if (!goesOn(course)) this.#ending.resolve()
    for (const action of actions) this.#act(action)
  }

  /** No other process takes over any more. */
  #hasBegun(): void {
    this.#early = []
    if (this.#journal) letGo(this.#journal)
    this.#begun.resolve()
  }

  /** Unless the program ends before. */
  later(ms: number, act: () => void): void {
    this.#timers.later(ms, act)
  }

  /** No time is of interest any more. */
  disarm(): void {
    this.#timers.clear()
    this.#clock.disarm()
  }

  tell(message: ProgramMessage): void {
    this.#host?.send(message)
    if (this.#course.hasBegun) return
    if (saysAll(message)) this.#early = this.#early.filter(({ t }) => t !== message.t)
    this.#early.push(message)
  }

  /** While it does not, results stay where they are: the coordinator says them again with each heartbeat. */
  isReading(): boolean {
    return (this.#host?.unreadBytes() ?? 0) <= MOST_UNREAD_BYTES
  }

  /** What is of no use to a program that has ended. */
  inform(message: ProgramMessage): void {
    if (!this.#course.outcome) this.tell(message)
  }

  /** In the process that it was given last. Its journal goes ahead, as fast as that is read. */
  start(message: StartMessage, journal: RecordedJournal): void {
    const host = this.#host
    if (!host) return
    this.#journal = journal
    const { messages } = journal
    // A former run of the process can say that this one has begun: it is to get all of its journal even then.
    if (messages.length > 0) void this.#sendAll(host, message, [...messages])
    else if (host.sealed) void host.sealed.then(() => this.#sendStart(host, message))
    else this.#sendStart(host, message)
  }

  async #sendAll(host: HostProcess, message: StartMessage, journal: Buffer[]): Promise<void> {
    await this.#inTime(host, host.sealed)
    for (let piece = journal.shift(); piece; piece = journal.shift()) {
      if (host.hasExited() || host !== this.#host) return
      await this.#inTime(host, host.sendBytes(piece))
    }
    this.#sendStart(host, message)
    await this.#inTime(host, this.#begun.promise)
  }

  /** A process that does not read on is ended, and another one tried: its journal would stay in memory for as long. */
  async #inTime(host: HostProcess, progress: Promise<void> | undefined): Promise<void> {
    let looks = 0
    const look = () => {
      looks += 1
      // Where this machine stood still, the first look comes before it could read.
      if (looks < LOOKS) return
      clearInterval(timer)
      if (!host.hasExited()) host.kill()
    }
    const timer = setInterval(look, this.#journalMs / LOOKS)
    await Promise.race([progress, host.exit])
    clearInterval(timer)
  }

  /** With what an earlier process was told, or this one before its start, where it heard nothing. */
  #sendStart(host: HostProcess, message: StartMessage): void {
    if (host !== this.#host) return
    host.send(message)
    for (const early of this.#early) host.send(early)
  }

  #act(action: CourseAction): void {
    if (action === 'disarm') this.disarm()
    else if (action === 'kill') this.#host?.kill()
    else if (action === 'settle') this.#over.resolve()
    else this.#tellToStop(action.ask)
  }

  #tellToStop(message: StopMessage): void {
    // What it has started is not asked to end where the run goes on: the program would take that for its own failure.
    if (message.why !== 'handover') this.later(message.graceMs / 2, () => this.#askOthers())
    this.later(message.graceMs, () => this.step({ t: 'outstayed' }))
    this.tell({ t: 'cancel', ...message })
  }

  #askOthers(): void {
    if (this.#host?.pid !== undefined) this.#host.enclosure.askOthers(this.#host.pid)
  }
}
