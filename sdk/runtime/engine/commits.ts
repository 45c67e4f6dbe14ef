import type { JournalOp } from '@windlass/shared/wire/journal.ts'

/** Which of the words to the journal are committed. */
interface Commits {
  /** The next word is on its way. */
  sent(op: JournalOp): void
  /** Calls back when all that was sent is committed. The process stays until then. */
  onceCommitted(onCommitted: () => void): void
  /** Resolves when no call is on its way that could be refused, or when nothing is waited for any more. */
  answered(): Promise<void>
  /** The first `count` words are committed. */
  confirm(count: number): void
  close(): void
}

export function createCommits(holdOn: (hold: boolean) => void): Commits {
  let sent = 0
  let asked = 0
  let committed = 0
  let waiting: { sent: number; onCommitted: () => void }[] = []
  const closed = Promise.withResolvers<void>()

  function onceCommitted(onCommitted: () => void): void {
    waiting.push({ sent, onCommitted })
    holdOn(true)
  }

  return {
    sent: (op) => {
      sent += 1
      if (op.op === 'open' && (op.ask.for === 'child' || op.ask.for === 'input')) asked = sent
    },
    onceCommitted,
    answered: async () => {
      if (asked > committed) await Promise.race([new Promise<void>(onceCommitted), closed.promise])
    },
    confirm: (count) => {
      committed = count
      if (waiting.length === 0) return
      const done = waiting.filter((each) => each.sent <= count)
      waiting = waiting.slice(done.length)
      for (const each of done) each.onCommitted()
      if (waiting.length === 0) holdOn(false)
    },
    close: () => {
      waiting = []
      holdOn(false)
      closed.resolve()
    },
  }
}
