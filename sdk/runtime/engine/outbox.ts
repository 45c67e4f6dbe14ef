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
  /**
   * `isFork`: the way of the program hangs on it, and a later attempt has to know that it was given. It has failed, or
   * something else is waited for too that may be there as well by then. That is told before any call that the program
   * makes with this result, or at its end.
   */
  delivered(delivery: Delivery, isFork: boolean): void
  /** Sends what was to be sent soon. */
  release(): void
  /** The program has ended: sends what was to be sent soon, and what it was given where its way has forked last. */
  finish(): void
  flush(): void
  confirm(count: number): void
  /** Resolves when each call that was made is committed, or nothing is sent any more. */
  answered(): Promise<void>
  /** Nothing is sent or waited for any more, whoever still speaks: the process may serve another run by then. */
  close(): void
}

/** The words to the journal: at once what somebody waits for, the rest in batches, in time before a parking. */
export function createOutbox(port: Pick<Port, 'send' | 'together' | 'later'>, holdOn: (hold: boolean) => void): Outbox {
  const commits = createCommits(holdOn)
  const gathered = createGathered(port, flush)
  let held: JournalOp[] = []
  let stopHolding: (() => void) | undefined
  let isClosed = false

  function send(op: JournalOp): void {
    if (isClosed) return
    hold(op)
    release()
  }

  function hold(op: JournalOp): void {
    if (gathered.isBefore(op)) held.push(...gathered.take())
    held.push(op)
  }

  function release(): void {
    stopHolding?.()
    stopHolding = undefined
    const ops = held.splice(0)
    const say = () => {
      for (const op of ops) {
        commits.sent(op)
        port.send(op)
      }
    }
    if (ops.length > 1) port.together(say)
    else say()
  }

  function flush(): void {
    held.push(...gathered.take())
    release()
  }

  return {
    send,
    sendSoon: (op) => {
      if (isClosed) return
      hold(op)
      stopHolding ??= port.later(0, false, release)
    },
    sendAndKeep: (op, onCommitted) => {
      if (isClosed) return
      send(op)
      commits.onceCommitted(onCommitted)
    },
    gather: gathered.sleep,
    delivered: gathered.deliver,
    release,
    finish: () => {
      if (gathered.hasFork()) flush()
      else release()
    },
    flush,
    confirm: (count) => commits.confirm(count),
    answered: () => {
      release()
      return commits.answered()
    },
    close: () => {
      isClosed = true
      gathered.close()
      stopHolding?.()
      held = []
      commits.close()
    },
  }
}

/** What may wait for a while, to be told in one go. */
function createGathered(port: Pick<Port, 'later'>, flush: () => void) {
  let sleeps: EntryIdentity[] = []
  let deliveries: Delivery[] = []
  /** How many calls had been made when the first of these was given that is a fork. */
  let callsBeforeFork = Infinity
  let stopTimer: (() => void) | undefined
  let isClosed = false

  function flushLater(): void {
    if (isClosed) return
    if (sleeps.length + deliveries.length >= MOST_GATHERED) flush()
    else stopTimer ??= port.later(GATHER_MS, false, flush)
  }

  function take(): JournalOp[] {
    stopTimer?.()
    stopTimer = undefined
    const ops: JournalOp[] = sleeps.map((entry) => ({ op: 'close', entry, state: 'done', result: 'null' }))
    if (deliveries.length > 0) ops.push({ op: 'deliver', list: deliveries })
    sleeps = []
    deliveries = []
    callsBeforeFork = Infinity
    return ops
  }

  return {
    sleep: (entry: EntryIdentity) => {
      sleeps.push(entry)
      flushLater()
    },
    deliver: (delivery: Delivery, isFork: boolean) => {
      const [, , calls] = delivery
      deliveries.push(delivery)
      if (isFork) callsBeforeFork = Math.min(callsBeforeFork, calls)
      flushLater()
    },
    take,
    hasFork: () => callsBeforeFork < Infinity,
    /** A fork is to be known by the time of this call. */
    isBefore: (op: JournalOp) => positionOf(op) > callsBeforeFork,
    close() {
      isClosed = true
      take()
    },
  }
}

/** Which call of the attempt says this; 0: none that is new. */
function positionOf(op: JournalOp): number {
  if ('entry' in op) return op.entry.position
  return 'position' in op ? op.position : 0
}
