import { settle, type Call } from './call.ts'
import { comesBefore, type FormerResult } from './inbox.ts'
import type { Port } from './port.ts'
import type { Outcome } from './step.ts'

/** What the program calls, or waits for, in a run that is to end. */
interface Refused {
  /** `former`: where that stood in an earlier process; without, it is given after all that has stood somewhere. */
  give(call: Call, outcome: Outcome, former?: FormerResult): void
  reject(call: Call, reason: Error): void
}

const NOWHERE: FormerResult = { attempt: 0, delivered: null, former: null, completed: null }

/**
 * Results go to the program one at a time and in the order in which it was given them before, and only when it can do
 * no more with these do waits reject: a race that is over keeps its winner.
 */
export function createRefused(port: Pick<Port, 'soon'>, isOver: () => boolean): Refused {
  const given: { call: Call; outcome: Outcome; former: FormerResult }[] = []
  let rejected: { call: Call; reason: Error }[] = []
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
    const first = given.shift()
    if (first) {
      settle(first.call, first.outcome)
      return turnSoon()
    }
    const waits = rejected
    rejected = []
    for (const { call, reason } of waits) call.reject(reason)
  }

  return {
    give(call, outcome, former = NOWHERE) {
      const before = given.findLastIndex((each) => !comesBefore(former, each.former))
      given.splice(before + 1, 0, { call, outcome, former })
      turnSoon()
    },
    reject(call, reason) {
      rejected.push({ call, reason })
      turnSoon()
    },
  }
}
