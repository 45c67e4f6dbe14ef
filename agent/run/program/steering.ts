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
import type { RecordedJournal } from './recorded-journal.ts'
import { createTimers } from './timers.ts'

/** A program that computes and never waits reads nothing, and may have had a thousand children. */
const MOST_UNREAD_BYTES = 32 * 1024 * 1024

/** Has the course of a program and the line to its process, and does what each step of the course asks for. */
export class Steering {
  readonly #timers = createTimers()
  readonly #clock: Pick<ComputeClock, 'disarm'>
  /** Said before the program has begun: another process may have to take over. */
  #early: ProgramMessage[] = []
  readonly #ending = Promise.withResolvers<void>()
  #over = Promise.withResolvers<void>()
  #host: HostProcess | undefined
  #course: Course

  /** A program that was taken back has begun already. */
  constructor(clock: Pick<ComputeClock, 'disarm'>, hasBegun: boolean) {
    this.#clock = clock
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
    if (course.hasBegun) this.#early = []
    if (!goesOn(course)) this.#ending.resolve()
    for (const action of actions) this.#act(action)
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
  start(message: StartMessage, { messages }: RecordedJournal): void {
    const host = this.#host
    if (!host) return
    if (messages.length === 0 && !host.sealed) this.#sendStart(host, message)
    else void this.#sendAll(host, message, messages)
  }

  async #sendAll(host: HostProcess, message: StartMessage, journal: readonly Buffer[]): Promise<void> {
    await host.sealed
    for (const piece of journal) {
      if (host.hasExited() || host !== this.#host) return
      await host.sendBytes(piece)
    }
    if (host === this.#host) this.#sendStart(host, message)
  }

  /** With what an earlier process was told, or this one before its start, where it heard nothing. */
  #sendStart(host: HostProcess, message: StartMessage): void {
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
