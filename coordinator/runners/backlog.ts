import type { AgentFrame } from '@windlass/shared/wire/agent.ts'

/**
 * What one agent may have under way here, in characters. Ours keeps some 4 Mi unacknowledged and then a frame; one that
 * does not wait would fill our memory.
 */
const MOST_CHARS = 48 * 1024 * 1024
/** The same without entries: the rest is some words at a time. */
const MOST_OTHER_CHARS = 4 * 1024 * 1024
/** Ours may have a whole window of entries under way in the shortest frames, and else a frame for each slot. */
const MOST_FRAMES = 50_000
const MOST_OTHER_FRAMES = 2000

const TOO_MUCH = 'more was sent than may wait for its answer'

/** The frames of one connection that are under way here or wait for their turn. */
export interface Backlog {
  /** Counts a frame until it is left; or says why there may not be more. */
  enter(t: AgentFrame['t'], chars: number): { leave(): void } | string
}

export function createBacklog(): Backlog {
  const all = { frames: 0, chars: 0 }
  const others = { frames: 0, chars: 0 }

  return {
    enter(t, chars) {
      const counts = t === 'entries' ? [all] : [all, others]
      const add = (by: 1 | -1) => {
        for (const count of counts) {
          count.frames += by
          count.chars += by * chars
        }
      }
      add(1)
      if (all.frames > MOST_FRAMES || others.frames > MOST_OTHER_FRAMES) return TOO_MUCH
      if (all.chars > MOST_CHARS || others.chars > MOST_OTHER_CHARS) return TOO_MUCH
      return { leave: () => add(-1) }
    },
  }
}

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
