import { settle, type Call } from './call.ts'
import { comesBefore, type FormerResult } from './inbox.ts'
import type { Alike } from './likeness.ts'
import { outcomeBefore } from './pending.ts'
import type { Port } from './port.ts'
import type { Outcome } from './step.ts'

interface RefusedNeeds {
  port: Pick<Port, 'soon'>
  isOver: () => boolean
  /** What is recorded of one of these with other arguments; `before`: and only where something stands before that. */
  nearest: (calls: readonly Call[], before: FormerResult | undefined) => Alike | undefined
}

/** What the program calls, or waits for, in a run that is to end. */
interface Refused {
  /** `former`: where that stood in an earlier process; without, it is given after all that has stood somewhere. */
  give(call: Call, outcome: Outcome, former?: FormerResult): void
  /** `isRecorded`: and it is not over. */
  reject(call: Call, reason: Error, isRecorded: boolean): void
}

const NOWHERE: FormerResult = { attempt: 0, delivered: null, former: null, completed: null }

/**
 * Results go to the program one at a time and in the order in which it was given them before, and only when it can do
 * no more with these do waits reject: a race that is over keeps its winner.
 */
export function createRefused({ port, isOver, nearest }: RefusedNeeds): Refused {
  const given: { call: Call; outcome: Outcome; former: FormerResult }[] = []
  /** Nothing is recorded of these as they were called. */
  const unmatched = new Map<Call, Error>()
  let open: { call: Call; reason: Error }[] = []
  let hasRejected = false
  let isTurnComing = false

  function turnSoon(): void {
    if (isTurnComing) return
    isTurnComing = true
    port.soon(() => {
      isTurnComing = false
      if (!isOver()) turn()
    })
  }

  function turn(): void {
    // Once something has rejected the program goes another way than before: what it calls there is something else.
    if (!hasRejected) while (match());
    const first = given.shift()
    if (first) {
      settle(first.call, first.outcome)
      return turnSoon()
    }
    const waits = [...open, ...[...unmatched].map(([call, reason]) => ({ call, reason }))]
    open = []
    unmatched.clear()
    hasRejected ||= waits.length > 0
    for (const { call, reason } of waits) call.reject(reason)
  }

  /** As in a replay: one at a time, the most alike first, and only where nothing else can be given before. */
  function match(): boolean {
    const found = unmatched.size > 0 ? nearest([...unmatched.keys()], given[0]?.former) : undefined
    if (!found) return false
    const { call, record } = found
    const outcome = outcomeBefore(record)
    if (outcome) insert(call, outcome, record)
    else open.push({ call, reason: unmatched.get(call)! })
    unmatched.delete(call)
    return true
  }

  function insert(call: Call, outcome: Outcome, former: FormerResult): void {
    const before = given.findLastIndex((each) => !comesBefore(former, each.former))
    given.splice(before + 1, 0, { call, outcome, former })
  }

  return {
    give(call, outcome, former = NOWHERE) {
      insert(call, outcome, former)
      turnSoon()
    },
    reject(call, reason, isRecorded) {
      if (isRecorded) open.push({ call, reason })
      else unmatched.set(call, reason)
      turnSoon()
    },
  }
}
