/** Message that a part's event loop turns. `alive: false` ends the watch, as under a debugger. */
export interface Alive {
  alive: boolean
}

export function isAlive(message: unknown): message is Alive {
  return typeof message === 'object' && message !== null && 'alive' in message
}

export interface Watch {
  /** Notes a message. The watch begins with the first. */
  heard(message: Alive): void
  /** Counts a look. True after too many looks without a message. */
  look(): boolean
}

/**
 * Counts looks instead of time: when this process stands still too, nobody looks, and messages that came meanwhile are
 * read before the second next look.
 */
export function createWatch(looks: number): Watch {
  let isWatched = false
  let silent = 0
  return {
    heard({ alive }) {
      isWatched = alive
      silent = 0
    },
    look: () => isWatched && ++silent > looks,
  }
}
