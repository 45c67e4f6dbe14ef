import type { Completion, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { ParkReport } from '@windlass/shared/wire/program.ts'
import type { ComputeClock } from './compute-clock.ts'
import type { Frame } from './frames.ts'
import type { ProgramEvent } from './output.ts'
import type { RecordedJournal } from './recorded-journal.ts'
import { journalIn } from './reports.ts'

/** Whether a program replays, computes or only waits, as its agent knows it. */
export interface Phase {
  readonly isReplaying: boolean
  readonly isParked: boolean
  /** What of these the program has not been given. */
  news(completions: readonly Completion[]): Completion[]
  /** These are on the way to the program, in one message. */
  given(completions: readonly Completion[]): void
  /** What the program says about its journal, and that its replay is over. */
  take(frame: Frame, at: number): ProgramEvent[]
  /** The program says that nothing but waits is left. Nothing comes of it while something is on its way to it. */
  park(report: ParkReport, at: number): ProgramEvent[]
  /** It goes on: what it waited for is there, or it did so by itself. Nothing when it was not parked. */
  resume(at: number): ProgramEvent[]
  /** What it has computed since its last `start` or `resume` and has not said in a `park`. A replay is nothing new. */
  computeMs(): number
}

interface PhaseOptions {
  replay: boolean
  journal: Pick<RecordedJournal, 'completed'>
  clock: ComputeClock
  /** Of a program that was taken back: whether it was parked, and how many messages with completions it has read. */
  known?: { isParked: boolean; heard: number } | undefined
}

export function createPhase({ replay, journal, clock, known }: PhaseOptions): Phase {
  const had = new Set(journal.completed)
  /** How many messages with completions it was sent. */
  let sent = known?.heard ?? 0
  let isReplaying = replay
  let isParked = known?.isParked ?? false
  /** It has said something since it was parked. */
  let hasSpoken = false

  if (!replay && !isParked) clock.go()

  const resumed = (at: number): ProgramEvent => ({ at, channel: 'resume', type: 'resume', data: null })

  function resume(at: number): ProgramEvent[] {
    if (!isParked) return []
    isParked = false
    clock.go()
    return [resumed(at)]
  }

  function parked(waitsFor: SuspendKind, at: number): ProgramEvent {
    const computeMs = clock.pause()
    isParked = true
    isReplaying = false
    hasSpoken = false
    return { at, channel: 'park', type: 'park', data: { waitsFor, computeMs } }
  }

  function endReplay(at: number): ProgramEvent[] {
    if (!isReplaying) return []
    isReplaying = false
    clock.go()
    return [resumed(at)]
  }

  function onJournal(frame: Frame, at: number): ProgramEvent[] {
    return [{ at, channel: 'journal', type: 'journal', data: journalIn(frame) }]
  }

  return {
    get isReplaying() {
      return isReplaying
    },
    get isParked() {
      return isParked
    },
    news: (completions) => completions.filter(({ n }) => !had.has(n)),
    given(completions) {
      sent += 1
      for (const { n } of completions) had.add(n)
    },
    take(frame, at) {
      hasSpoken = true
      if (frame.name === 'journal') return onJournal(frame, at)
      return frame.name === 'live' ? endReplay(at) : []
    },
    park({ waitsFor, heard }, at) {
      // What it has not read yet makes it go on, or say again that it waits.
      if (heard < sent) return []
      // It was parked already, and has done nothing since.
      if (isParked && !hasSpoken) return []
      // Parked anew without having been woken: something of its own had made it go on.
      return [...resume(at), parked(waitsFor, at)]
    },
    resume,
    computeMs: () => clock.counted(),
  }
}
