import type { Cause, Why } from '@windlass/shared/model/why.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import type { PoolRunner, Situation } from './store-why.ts'
import { causeOf, counted, lengthText, timeText } from './why-words.ts'

/** A runner that is free asks again at least every half minute. */
const SILENT_MS = 60_000

type Verdict = Why['runners'][number] & { isBusy: boolean }

/** Whether a runner would take the next run of its pool, and why not. */
export function judgeRunner(runner: PoolRunner, now: Date): Verdict {
  const { id, name, slots, busy, lastPollAt, lastHeartbeatAt } = runner
  const no = (reason: string, isBusy = false): Verdict => ({ id, name, takes: false, reason, isBusy })
  const ago = (time: Date) => `${lengthText(now.getTime() - time.getTime())} ago`
  const heardAt = Math.max(lastPollAt?.getTime() ?? 0, lastHeartbeatAt?.getTime() ?? 0)
  if (runner.state === 'revoked') return no('is revoked and gets nothing any more')
  if (heardAt === 0) return no('has registered and was never heard of since')
  if (now.getTime() - heardAt > SILENT_MS)
    return no(`is offline: last heard of ${ago(new Date(heardAt))}, at ${timeText(new Date(heardAt))}`)
  if (busy >= slots) return no(`has no free slot (${busy} of ${slots} taken)`, true)
  if (lastPollAt === null) return no('is connected and has not asked for work yet')
  if (now.getTime() - lastPollAt.getTime() > SILENT_MS)
    return no(`is connected and last asked for work ${ago(lastPollAt)}, at ${timeText(lastPollAt)}`)
  return {
    id,
    name,
    takes: true,
    reason: `would take it: asks for work, ${busy} of ${slots} slots taken`,
    isBusy: false,
  }
}

export interface QueueFacts {
  runners: PoolRunner[]
  /** Runs that hold what a run over its limit waits for, ten at most. */
  holders: RunId[]
}

/** Why a run that has no runner has none. The runners are told as well where it is they who are waited for. */
export function queueCauses(run: Situation, facts: QueueFacts): { causes: Cause[]; runners: Why['runners'] } {
  if (run.entersAt !== null) return { causes: [pauseCause(run, run.entersAt)], runners: [] }
  if (run.isWaiter) return { causes: [limitCause(run, facts.holders)], runners: [] }
  const verdicts = facts.runners.map((runner) => judgeRunner(runner, run.now))
  const runners = verdicts.map(({ isBusy: _, ...told }) => told)
  return { causes: poolCauses(run, verdicts), runners }
}

function pauseCause(run: Situation, until: Date): Cause {
  const isFirst = run.attempt === 1
  // Whatever else brings a run back from its agent ends the attempt.
  if (isFirst && run.claimedAt !== null) return putOffCause(run, until)
  return causeOf({
    code: isFirst ? 'DELAYED' : 'RETRY_BACKOFF',
    message: isFirst
      ? `It was started with a delay and enters the queue at ${timeText(until)}.`
      : `Attempt ${run.attempt - 1} ended without success; attempt ${run.attempt} enters the queue at ${timeText(until)}.`,
    since: run.queuedAt,
    until,
    change: 'It ends by itself. To go on sooner, cancel the run and retry it.',
  })
}

function limitCause(run: Situation, runIds: RunId[]): Cause {
  const before = run.waitersAhead === 0 ? 'It is the next' : `${counted(run.waitersAhead, 'run')} before it`
  return causeOf({
    code: 'CONCURRENCY_LIMIT',
    message: `Its workflow limits \`concurrency\`, and ${counted(run.counted, 'run')} of its group ${run.counted === 1 ? 'is' : 'are'} under way. ${before}.`,
    since: run.queuedAt,
    change:
      'A run of the group that ends, is cancelled or comes to wait lets the next in. A higher limit counts for runs of the version that has it.',
    runIds,
  })
}

function poolCauses(run: Situation, verdicts: Verdict[]): Cause[] {
  const causes: Cause[] = []
  const { pool } = run
  const taker = verdicts.find((verdict) => verdict.takes)
  const busy = verdicts.filter((verdict) => verdict.isBusy)
  const others = verdicts.length - busy.length
  const about = { since: run.enteredQueueAt ?? run.queuedAt }
  if (!run.isInQueue)
    return [
      causeOf({
        ...about,
        code: 'STARTING',
        message: 'It is between two queues; the coordinator puts it where it belongs.',
        change: 'It ends by itself within a minute; if it does not, report it with the id of the run.',
      }),
    ]
  if (verdicts.length === 0)
    causes.push(
      causeOf({
        ...about,
        code: 'NO_RUNNER',
        message: `The pool \`${pool}\` has no runner.`,
        change: `Whoever may add a machine: \`windlass pools token ${pool}\`, and there \`windlass agent start\` with that token.`,
      }),
    )
  else if (!taker && busy.length > 0)
    causes.push(
      causeOf({
        ...about,
        code: 'RUNNERS_BUSY',
        message: `No runner of the pool \`${pool}\` has a free slot; ${others === 0 ? 'all are busy' : `${busy.length} ${busy.length === 1 ? 'is' : 'are'} busy, the others take nothing`}.`,
        change: `A run that ends or comes to wait frees a slot; so does one more runner, or more slots: \`windlass runners list --pool ${pool}\`.`,
      }),
    )
  else if (!taker)
    causes.push(
      causeOf({
        ...about,
        code: 'NO_RUNNER',
        message: `None of the ${counted(verdicts.length, 'runner')} of the pool \`${pool}\` takes runs now.`,
        change: 'Whoever runs these machines: start their agents, or add a runner to the pool.',
      }),
    )
  if (run.ahead > 0)
    causes.push(
      causeOf({
        ...about,
        code: 'RUNS_AHEAD',
        message: `${counted(run.ahead, 'run')} of the pool \`${pool}\` ${run.ahead === 1 ? 'goes' : 'go'} before it.`,
        change:
          'They are taken first: continued runs, then the higher priority, then the older. A higher `priority` can be given when a run is started.',
      }),
    )
  if (causes.length > 0) return causes
  return [
    causeOf({
      ...about,
      code: 'STARTING',
      message: `It is the next of the pool \`${pool}\`, and ${taker?.name} asks for work.`,
      change: 'It ends by itself within moments.',
    }),
  ]
}

/** An agent had it, and nothing of it has begun. */
function putOffCause(run: Situation, until: Date): Cause {
  return causeOf({
    code: 'PUT_OFF',
    message: `Its agent could not prepare it, for instance as its secrets could not be read; the last \`run.queued\` of its log says why. It is offered again at ${timeText(until)}.`,
    since: run.queuedAt,
    until,
    change: 'It is tried again by itself; it goes on once what its log names is mended.',
  })
}
