import type { Held } from '../run/spool/held.ts'

/**
 * How much may be under way, sent and not yet acknowledged. The coordinator keeps all of it in its memory until it is
 * committed, and programs can print far faster than a database writes; here it waits on disk instead.
 */
export interface Window {
  /** Counts what is being sent. */
  add(held: Held, last: number, chars: number): void
  /** Resolves when there is room again; nothing while there is. */
  room(): Promise<void> | undefined
  /** Looks at what has been answered by now. */
  settle(): void
  /** Forgets everything: the connection it was sent on is gone. */
  clear(): void
}

interface Sent {
  held: Held
  last: number
  chars: number
}

/** `isKnown` is false for placements that are over: nobody will acknowledge what was sent for them. */
export function openWindow(limitChars: number, isKnown: (held: Held) => boolean): Window {
  let sent: Sent[] = []
  let chars = 0
  const waiting: (() => void)[] = []

  const wake = () => {
    for (const resolve of waiting.splice(0)) resolve()
  }

  return {
    add(held, last, more) {
      sent.push({ held, last, chars: more })
      chars += more
    },
    room: () => (chars < limitChars ? undefined : new Promise((resolve) => waiting.push(resolve))),
    settle() {
      // Answers come in the order of the questions, so that what is over stands in front.
      const open = sent.findIndex(({ held, last }) => held.acked < last && isKnown(held))
      for (const each of sent.splice(0, open === -1 ? sent.length : open)) chars -= each.chars
      if (chars < limitChars) wake()
    },
    clear() {
      sent = []
      chars = 0
      wake()
    },
  }
}
