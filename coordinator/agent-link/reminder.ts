import type { Applied } from '../engine/rules/batch.ts'
import { tellWakes } from '../dispatch/wakes.ts'
import type { Session } from './session.ts'

/** So long after the last time. */
const REMIND_MS = 1000

/**
 * Says what an agent has not been given once more, with its heartbeats, but not with each of many. Heartbeats do not
 * wait for it: nothing may hold up the next one.
 */
export function createReminder({ deps, runner }: Session): () => Promise<void> {
  let remindedAt = -Infinity
  let isUnderWay = false
  return async () => {
    if (isUnderWay || performance.now() - remindedAt < REMIND_MS) return
    isUnderWay = true
    try {
      await tellWakes(deps, runner.id)
    } finally {
      remindedAt = performance.now()
      isUnderWay = false
    }
  }
}

/**
 * What was told of entries that are sent again may be lost: refusals of calls, which a program that has returned has to
 * be given before its calls are acknowledged. Until they are told again nothing is acknowledged, as what comes behind
 * such entries acknowledges them as well.
 */
export function createRetelling(tellAgain: () => Promise<void>): (applied: Applied) => Promise<void> | undefined {
  let telling: Promise<void> | undefined
  return (applied) => {
    if (applied.kind === 'ack' && applied.isRepeated) telling = tellAgain()
    return telling
  }
}
