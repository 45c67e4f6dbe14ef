import type { Completion, JournalRecord, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { ComputeClock } from './compute-clock.ts'
import type { Frame } from './program-frames.ts'
import type { ProgramEvent } from './program-output.ts'
import { journalIn } from './program-reports.ts'

/** Whether a program replays, computes or only waits, as its agent knows it. */
interface Standing {
  readonly isReplaying: boolean
  readonly isParked: boolean
  /** What of these the program has not been given. */
  news(completions: readonly Completion[]): Completion[]
  /** These are on the way to the program. */
  given(completions: readonly Completion[]): void
  /** What the program says about its journal, and that its replay is over. */
  take(frame: Frame, at: number): ProgramEvent[]
  /**
   * The program says that nothing but waits is left. `again` is what it is to be sent once more: it may not have read it when
   * it said so, and goes on then; if it has, it says again that it waits.
   */
  park(waitsFor: SuspendKind, at: number): { events: ProgramEvent[]; again: Completion[] }
  /** It goes on: what it waited for is there, or it did so by itself. Nothing when it was not parked. */
  resume(at: number): ProgramEvent[]
  /** What it has computed since its last `start` or `resume` and has not said in a `park`. A replay is nothing new. */
  computeMs(): number
}

interface StandingOptions {
  replay: boolean
  journal: readonly JournalRecord[]
  clock: ComputeClock
}

export function createStanding({ replay, journal, clock }: StandingOptions): Standing {
  const had = new Set(journal.filter(({ state }) => state !== 'open').map(({ n }) => n))
  /** Sent to the program, which has not said yet that it has seen them. */
  const owed = new Map<number, Completion>()
  let isReplaying = replay
  let isParked = false
  /** It has said something since it was parked. */
  let hasSpoken = false

  if (!replay) clock.go()

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

  function live(at: number): ProgramEvent[] {
    if (!isReplaying) return []
    isReplaying = false
    clock.go()
    return [resumed(at)]
  }

  function onJournal(frame: Frame, at: number): ProgramEvent[] {
    const { opText, delivered } = journalIn(frame)
    for (const n of delivered) owed.delete(n)
    return [{ at, channel: 'journal', type: 'journal', data: opText }]
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
      for (const completion of completions) {
        had.add(completion.n)
        owed.set(completion.n, completion)
      }
    },
    take(frame, at) {
      hasSpoken = true
      if (frame.name === 'journal') return onJournal(frame, at)
      return frame.name === 'live' ? live(at) : []
    },
    park(waitsFor, at) {
      const again = [...owed.values()]
      owed.clear()
      // It was asked once more, and had been parked already.
      if (isParked && !hasSpoken && again.length === 0) return { events: [], again }
      // Parked anew without having been woken: something of its own had made it go on.
      const events = [...resume(at), parked(waitsFor, at)]
      // What is on its way to it makes it go on by itself: it must not be taken for parked.
      return { events: again.length === 0 ? events : [...events, ...resume(at)], again }
    },
    resume,
    computeMs: () => clock.counted(),
  }
}
