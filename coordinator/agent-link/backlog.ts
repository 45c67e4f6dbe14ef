/**
 * What one agent may have under way here, in characters and over all its connections. Ours keeps 4 Mi unacknowledged,
 * up to 16 Mi where very many runs wait for their answers, and then a frame, of which the socket takes 16 MiB. After a
 * reconnect one more may still be on its way to the database.
 */
const MOST_CHARS = 40 * 1024 * 1024
/** Ours may have a whole window of entries under way in the shortest frames, and else a frame for each slot. */
const MOST_FRAMES = 50_000
/** Of one connection, and without entries: the rest is some words at a time. */
const MOST_OTHERS = { chars: 4 * 1024 * 1024, frames: 2000 }
/** All agents of an org: the windows of some thirty, and three times what one of them may have. */
const MOST_OF_ORG = { chars: 128 * 1024 * 1024, frames: 200_000 }

/** What is under way: it waits to be read, or for its answer. */
export interface Load {
  chars: number
  frames: number
}

export const newLoad = (): Load => ({ chars: 0, frames: 0 })

export function addTo(load: Load, frames: 1 | -1, chars: number): void {
  load.frames += frames
  load.chars += frames * chars
}

const isOver = (load: Load, most: Load) => load.chars > most.chars || load.frames > most.frames

export const isTooMuchOfRunner = (load: Load) => isOver(load, { chars: MOST_CHARS, frames: MOST_FRAMES })
export const isTooMuchOfOthers = (load: Load) => isOver(load, MOST_OTHERS)
export const isTooMuchOfOrg = (load: Load) => isOver(load, MOST_OF_ORG)

/** Begins each work when the one before has ended, the first at once; nothing is begun any more once it is over. */
export type Line = <T>(work: () => Promise<T>) => Promise<T | undefined>

export function createLine(isOver: () => boolean): Line {
  let last: Promise<void> = Promise.resolve()
  let length = 0
  return async (work) => {
    const before = last
    const { promise, resolve } = Promise.withResolvers<void>()
    last = promise
    try {
      if (length++ > 0) await before
      return isOver() ? undefined : await work()
    } finally {
      length--
      resolve()
    }
  }
}
