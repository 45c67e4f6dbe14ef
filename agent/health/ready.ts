import type { Unready } from '@windlass/shared/model/runner.ts'
import type { Facts } from '../facts.ts'
import type { Intake } from '../intake.ts'
import type { Slots } from '../run/slots.ts'
import type { Activity } from '../status/activity.ts'

/** A poll is held for 25 s at most; with the pauses after failures there is one within this. */
const POLLED_MS = 60_000

interface ReadyNeeds {
  activity: Pick<Activity, 'connection' | 'lastPollAt'>
  facts: Pick<Facts, 'current'>
  intake: Intake
  slots: Pick<Slots, 'free'>
}

/** Why this agent would not take a run that is triggered now; nothing while it is only busy. */
export function notReady({ activity, facts, intake, slots }: ReadyNeeds): Unready[] {
  const { connection, lastPollAt } = activity
  const problems: Unready[] = [...facts.current().unready]
  if (connection.state !== 'connected')
    problems.push({ check: 'connection', message: 'it is not connected to the coordinator' })
  if (intake.isLeaving) problems.push({ check: 'intake', message: 'it is being stopped' })
  else if (!intake.isOpen())
    problems.push({
      check: 'intake',
      message: [`it is ${intake.notice.state}`, intake.notice.reason].filter(Boolean).join(': '),
    })
  if (problems.length > 0 || slots.free() === 0) return problems
  const isPolling = Date.now() - Math.max(lastPollAt ?? 0, connection.since) < POLLED_MS
  return isPolling ? [] : [{ check: 'poll', message: `it has not asked for work for ${POLLED_MS / 1000} s` }]
}
