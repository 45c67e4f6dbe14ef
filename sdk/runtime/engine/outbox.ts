import type { Delivery, EntryIdentity, JournalOp } from '@windlass/shared/wire/journal.ts'
import { createCommits } from './commits.ts'
import type { Port } from './port.ts'

const GATHER_MS = 1_000
const MOST_GATHERED = 500

export interface Outbox {
  send(op: JournalOp): void
  /**
   * Sends it soon, before anything else and with whatever else is said by then: a wait that leads to a parking goes
   * along with it.
   */
  sendSoon(op: JournalOp): void
  /** Sends it, and calls back when it is committed. The process stays until then. */
  sendAndKeep(op: JournalOp, onCommitted: () => void): void
  /** A sleep that was over before anybody had to know of it. */
  gather(entry: EntryIdentity): void
  delivered(delivery: Delivery): void
  /** Sends what was to be sent soon. */
  release(): void
  flush(): void
  confirm(count: number): void
  /** Resolves when each call that was made is committed, or nothing is sent any more. */
  answered(): Promise<void>
  /** Nothing is sent or waited for any more, whoever still speaks: the process may serve another run by then. */
  close(): void
}

/** The words to the journal: at once what somebody waits for, the rest in batches, in time before a parking. */
export function createOutbox(port: Pick<Port, 'send' | 'later'>, holdOn: (hold: boolean) => void): Outbox {
  const commits = createCommits(holdOn)
  let sleeps: EntryIdentity[] = []
  let deliveries: Delivery[] = []
  let stopTimer: (() => void) | undefined
  let held: JournalOp[] = []
  let stopHolding: (() => void) | undefined
  let isClosed = false

  function send(op: JournalOp): void {
    release()
    sendNow(op)
  }

  function sendNow(op: JournalOp): void {
    if (isClosed) return
    commits.sent(op)
    port.send(op)
  }

  function release(): void {
    stopHolding?.()
    stopHolding = undefined
    for (const op of held.splice(0)) sendNow(op)
  }

  function flush(): void {
    stopTimer?.()
    stopTimer = undefined
    release()
    for (const entry of sleeps) send({ op: 'close', entry, state: 'done', result: 'null' })
    if (deliveries.length > 0) send({ op: 'deliver', list: deliveries })
    sleeps = []
    deliveries = []
  }

  function flushLater(): void {
    if (isClosed) return
    if (sleeps.length + deliveries.length >= MOST_GATHERED) flush()
    else stopTimer ??= port.later(GATHER_MS, false, flush)
  }

  return {
    send,
    sendSoon: (op) => {
      if (isClosed) return
      held.push(op)
      stopHolding ??= port.later(0, false, release)
    },
    sendAndKeep: (op, onCommitted) => {
      if (isClosed) return
      send(op)
      commits.onceCommitted(onCommitted)
    },
    gather: (entry) => {
      sleeps.push(entry)
      flushLater()
    },
    delivered: (delivery) => {
      deliveries.push(delivery)
      flushLater()
    },
    release,
    flush,
    confirm: (count) => commits.confirm(count),
    answered: () => {
      release()
      return commits.answered()
    },
    close: () => {
      isClosed = true
      stopTimer?.()
      stopHolding?.()
      held = []
      sleeps = []
      deliveries = []
      commits.close()
    },
  }
}
