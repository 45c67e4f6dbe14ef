import type { ProgramEvent } from './output.ts'
import type { NoteMark } from './program.ts'

/** Says now and then how far a program was heard, so that little of it has to be told again. */
export interface Marking {
  follow(note: NoteMark): void
  /** Frames of so many bytes were given out. */
  given(bytes: number): void
  /**
   * Gives out what the program would not tell again: from then on another mark is needed. Nor would it tell again what
   * is held back of a secret, and whoever heard the rest alone would show it.
   */
  add(events: ProgramEvent[], isInSecret?: boolean): void
}

interface Mark {
  frames: number | null
  journal: number
  isParked: boolean
}

/** Far less than a program keeps for being told again. */
const MOST_BYTES = 32 * 1024
const MOST_MS = 100

export function createMarking(stand: () => Mark, give: (events: ProgramEvent[]) => void): Marking {
  let note: NoteMark | undefined
  let bytes = 0
  let markedAt = 0
  let wasParked = false

  function mark(): void {
    const { frames, journal, isParked } = stand()
    // The mark before this one serves as long as it has to.
    if (frames === null) return
    note?.({ frames, journal, isParked })
    bytes = 0
    markedAt = performance.now()
    wasParked = isParked
  }

  const isDue = () => bytes > MOST_BYTES || stand().isParked !== wasParked || performance.now() - markedAt > MOST_MS

  return {
    follow(next) {
      note = next
      mark()
    },
    given(more) {
      if (!note) return
      bytes += more
      if (isDue()) mark()
    },
    add(events, isInSecret = false) {
      if (events.length === 0 && !isInSecret) return
      note?.({ ...stand(), frames: null })
      if (events.length === 0) return
      give(events)
      mark()
    },
  }
}
