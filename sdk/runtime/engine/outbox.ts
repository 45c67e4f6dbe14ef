import type { Delivery, EntryIdentity, JournalOp } from '@windlass/shared/wire/journal.ts'
import { createCommits } from './commits.ts'
import type { Port } from './port.ts'

const GATHER_MS = 1_000
const MOST_GATHERED = 500

/**
 * Before what the journal has to have that the program was given something. `parking`: that alone. `calls`: also before
 * any call that the program makes with it. `anything`: before whatever is said next.
 */
export type Deadline = 'parking' | 'calls' | 'anything'

export interface Outbox {
  send(op: JournalOp): void
  /**
   * Sends it soon, before anything else and with whatever else is said by then: a wait that leads to a parking goes
   * along with it.
   */
  sendSoon(op: JournalOp): void
  /** Sends it, and calls back when it is committed. The process stays until then. */
  sendAndKeep(op: JournalOp, onCommitted: () => void): void
  /** A sleep that was over before anybody had to know of it: that it was is told with whatever is said next. */
  gather(entry: EntryIdentity): void
  /** The program is given that. */
  delivered(delivery: Delivery, deadline: Deadline): void
  /** Sends what was to be sent soon. */
  release(): void
  flush(): void
  /** From now on the process may end at any moment: what is not for a parking alone is told before it is given. */
  hurry(): void
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
    held.push(...gathered.takeBefore(op), op)
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
    flush,
    hurry: gathered.hurry,
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
  const sleeps: EntryIdentity[] = []
  let deliveries: Delivery[] = []
  /** They go before calls behind this one; before anything: -1. */
  let callsBefore = Infinity
  let stopTimer: (() => void) | undefined
  let isHurried = false
  let isClosed = false

  const isDue = () => sleeps.length > 0 || callsBefore < Infinity

  function flushLater(): void {
    if (isClosed) return
    if (sleeps.length + deliveries.length >= MOST_GATHERED || (isHurried && isDue())) flush()
    else stopTimer ??= port.later(GATHER_MS, false, flush)
  }

  function take(): JournalOp[] {
    stopTimer?.()
    stopTimer = undefined
    const ops = takeSleeps()
    if (deliveries.length > 0) ops.push({ op: 'deliver', list: deliveries })
    deliveries = []
    callsBefore = Infinity
    return ops
  }

  /** The coordinator writes them along with the result of a step, which takes it a statement more with deliveries. */
  function takeSleeps(): JournalOp[] {
    return sleeps.splice(0).map((entry) => ({ op: 'close', entry, state: 'done', result: 'null' }))
  }

  return {
    sleep: (entry: EntryIdentity) => {
      sleeps.push(entry)
      flushLater()
    },
    deliver: (delivery: Delivery, deadline: Deadline) => {
      const [, , calls] = delivery
      deliveries.push(delivery)
      if (deadline !== 'parking') callsBefore = Math.min(callsBefore, deadline === 'calls' ? calls : -1)
      flushLater()
    },
    take,
    /** What is to be known by the time of this. */
    takeBefore: (op: JournalOp) => (positionOf(op) > callsBefore ? take() : takeSleeps()),
    hurry: () => {
      isHurried = true
      if (isDue()) flush()
    },
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
