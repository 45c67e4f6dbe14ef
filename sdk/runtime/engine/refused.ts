import { settle, type Call } from './call.ts'
import { comesBefore, type FormerResult } from './inbox.ts'
import type { Alike } from './likeness.ts'
import { outcomeBefore } from './pending.ts'
import type { Port } from './port.ts'
import type { Retracing } from './retracing.ts'
import type { Outcome } from './step.ts'

interface RefusedNeeds {
  port: Pick<Port, 'soon' | 'later'>
  isOver: () => boolean
  /** What is recorded of one of these with other arguments; once. */
  nearest: (calls: readonly Call[]) => Alike | undefined
  retracing: () => Retracing
}

/** What the program calls, or waits for, in a run that is to end. */
interface Refused {
  /** `patienceMs`: after so long what is open rejects, wherever the program is. */
  begin(patienceMs: number): void
  /** `former`: where that stood in an earlier process; without, it is given after all that has stood somewhere. */
  give(call: Call, outcome: Outcome, former?: FormerResult): void
  /** `isRecorded`: and it is not over. */
  reject(call: Call, reason: Error, isRecorded: boolean): void
  /** Nothing of the program is in flight. True: it is given something. */
  goOn(): boolean
}

interface Given {
  call: Call
  outcome: Outcome
  former: FormerResult
}

function insert(given: Given[], one: Given): void {
  const before = given.findLastIndex((each) => !comesBefore(one.former, each.former))
  given.splice(before + 1, 0, one)
}

const NOWHERE: FormerResult = { attempt: 0, delivered: null, after: 0, former: null, completed: null }

/**
 * Results go to the program one at a time and in the order in which it was given them before, and only when it can do
 * no more with these do waits reject: a race that is over keeps its winner.
 */
export function createRefused({ port, isOver, nearest, retracing }: RefusedNeeds): Refused {
  const given: Given[] = []
  /** Nothing is recorded of these as they were called. */
  const unmatched = new Map<Call, Error>()
  let open: { call: Call; reason: Error }[] = []
  let hasRejected = false
  let isTurnComing = false
  let isPatient = true

  function turnSoon(): void {
    if (isTurnComing) return
    isTurnComing = true
    port.soon(() => {
      isTurnComing = false
      if (!isOver()) turn()
    })
  }

  function turn(): void {
    const [first] = given
    if (first && retracing().mayGive(first.former)) return giveAt(0)
    if (isPatient && (first || !retracing().mayGive())) return
    if (match()) return turnSoon()
    // What a step has come to that may belong to its tidying up.
    const at = given.findIndex(({ former }) => former === NOWHERE)
    if (at >= 0) return giveAt(at)
    const waits = [...open, ...[...unmatched].map(([call, reason]) => ({ call, reason }))]
    open = []
    unmatched.clear()
    hasRejected ||= waits.length > 0
    for (const { call, reason } of waits) call.reject(reason)
  }

  function giveAt(at: number): void {
    for (const { call, outcome } of given.splice(at, 1)) settle(call, outcome)
    turnSoon()
  }

  /** As in a replay: one at a time, the most alike first, and only where nothing else can be given before. */
  function match(): boolean {
    // Once something has rejected the program goes another way than before: what it calls there is something else.
    if (hasRejected) return false
    const found = unmatched.size > 0 ? nearest([...unmatched.keys()]) : undefined
    if (!found) return false
    const { call, record } = found
    retracing().called(record)
    const outcome = outcomeBefore(record)
    if (outcome) insert(given, { call, outcome, former: record })
    else open.push({ call, reason: unmatched.get(call)! })
    unmatched.delete(call)
    return true
  }

  function give(call: Call, outcome: Outcome, former = NOWHERE): void {
    insert(given, { call, outcome, former })
    turnSoon()
  }

  return {
    begin(patienceMs) {
      if (retracing().isOver) return
      port.later(patienceMs, false, () => {
        isPatient = false
        turnSoon()
      })
    },
    give,
    reject(call, reason, isRecorded) {
      if (isRecorded) open.push({ call, reason })
      else unmatched.set(call, reason)
      turnSoon()
    },
    goOn() {
      if (given.length + open.length + unmatched.size === 0) return false
      if (!match()) retracing().giveUpFor(given[0]?.former)
      turnSoon()
      return true
    },
  }
}
