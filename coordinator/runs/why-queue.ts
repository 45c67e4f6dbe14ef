import { PoolSettings } from '@windlass/shared/model/pool.ts'
import type { Cause, Why } from '@windlass/shared/model/why.ts'
import type { RunId } from '@windlass/shared/ids.ts'
import { readHolds } from '../engine/rules/holds.ts'
import { readNeeds } from '../matching/needs.ts'
import type { PoolRunner, Reserved, Situation } from './store-why.ts'
import { debounceCause, limitCause, throttleCause } from './why-load.ts'
import { judgeRunner, type Verdict } from './why-runners.ts'
import { type CauseFacts, causeOf, counted, timeText } from './why-texts.ts'

/** As many as the contract of `runIds` allows. */
const MOST_NAMED = 10

export interface QueueFacts {
  runners: PoolRunner[]
  /** Runs that hold what a run over its limit waits for, ten at most. */
  holders: RunId[]
  /** Runners that are kept for it, or for runs that go before it. */
  reserved: Reserved[]
  /** For how long yet its pool gives nothing out as the database was restored; 0: it does. */
  heldMs: number
}

/** Why a run that has no runner has none. The runners are told as well where it is they who are waited for. */
export function queueCauses(run: Situation, facts: QueueFacts): { causes: Cause[]; runners: Why['runners'] } {
  if (run.entersAt !== null) return { causes: [pauseCause(run, run.entersAt)], runners: [] }
  if (run.waitsInGroup !== null) return { causes: [limitCause(run, facts.holders)], runners: [] }
  if (facts.heldMs > 0 && run.isInQueue) return { causes: [restoredCause(run, facts.heldMs)], runners: [] }
  const settings = PoolSettings.parse(run.poolSettings)
  const asked = { needs: readNeeds(run.needs), settings, now: run.now, reserved: facts.reserved }
  const verdicts = facts.runners.map((runner) => judgeRunner(runner, asked))
  const runners = verdicts.map(({ id, name, takes, reason }) => ({ id, name, takes, reason }))
  return { causes: poolCauses(run, verdicts, facts.reserved), runners }
}

function pauseCause(run: Situation, until: Date): Cause {
  const isFirst = run.attempt === 1
  const { throttle, debounce } = readHolds(run.holds)
  if (debounce) return debounceCause(run, until, debounce.merged)
  if (throttle?.isTaken) return throttleCause(run, until, throttle)
  if (run.isPutOff) return putOffCause(run, until)
  if (isFirst && isOverdue(run)) return lateCause(run, until)
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

/** Others may hold what it needs for as long. */
const LATE_MS = 15_000

/** Of a run that is due by now `queuedAt` is when it was to enter. */
const isOverdue = ({ now, queuedAt, createdAt }: Situation) =>
  queuedAt > createdAt && now.getTime() - queuedAt.getTime() > LATE_MS

function lateCause(run: Situation, until: Date): Cause {
  return causeOf({
    code: 'DELAYED',
    message:
      `It was to enter the queue at ${timeText(run.queuedAt)}, and letting it in has failed since; ` +
      `it is tried again at ${timeText(until)}.`,
    since: run.queuedAt,
    until,
    change:
      'Look for `timer.failed` with its id in the log of the coordinator. Where it fails for ten minutes while ' +
      'others are let in, the run fails.',
  })
}

function restoredCause(run: Situation, heldMs: number): Cause {
  const message =
    'The database was restored or moved, and agents may still execute what they held before. ' +
    `The pool \`${run.pool}\` gives no run out until they must have ended it.`
  return causeOf({
    code: 'DATABASE_RESTORED',
    message,
    since: run.enteredQueueAt ?? run.queuedAt,
    until: new Date(run.now.getTime() + heldMs),
    change:
      'It ends by itself. Where all agents were stopped, an operator of the coordinator may stop it, say ' +
      '`windlass admin restored --agents-stopped`, and start it again.',
  })
}

function poolCauses(run: Situation, verdicts: Verdict[], reserved: Reserved[]): Cause[] {
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
  const candidate = verdicts.find((verdict) => verdict.takes)
  const causes = candidate ? [] : [{ ...about, ...nobodyTakes(run, verdicts, reserved) }]
  if (run.ahead > 0) causes.push({ ...about, ...aheadOf(run) })
  if (causes.length > 0) return causes.map(causeOf)
  return [
    causeOf({
      ...about,
      code: 'STARTING',
      message: `It is the next of the pool \`${run.pool}\`, and ${candidate?.name} asks for work.`,
      change: 'It ends by itself within moments.',
    }),
  ]
}

function aheadOf({ pool, ahead }: Situation): CauseFacts {
  return {
    code: 'RUNS_AHEAD',
    message: `${counted(ahead, 'run')} of the pool \`${pool}\` ${ahead === 1 ? 'goes' : 'go'} before it.`,
    change:
      'Those that fit a runner are taken there first: continued runs, then the higher priority, then the older. A higher `priority` can be given when a run is started.',
  }
}

/** What is in the way for most that could be done about it: first what no machine there can do, then who is at work. */
function nobodyTakes(run: Situation, verdicts: Verdict[], reserved: Reserved[]): CauseFacts {
  const { pool } = run
  if (run.poolDeletedAt !== null)
    return {
      code: 'NO_RUNNER',
      message: `The pool \`${pool}\` was deleted.`,
      change:
        `Whoever may make pools: \`windlass pools create ${pool}\` makes it anew, with this run in it. ` +
        `\`windlass runs cancel ${run.id}\` ends the run.`,
    }
  if (verdicts.length === 0)
    return {
      code: 'NO_RUNNER',
      message: `The pool \`${pool}\` has no runner.`,
      change: `Whoever may add a machine: \`windlass pools token ${pool}\`, and there \`windlass agent start\` with that token.`,
    }
  const fit = verdicts.filter((verdict) => verdict.kind !== 'unfit')
  if (fit.length === 0) return nobodyCould(run, verdicts)
  const own = verdicts.find(({ id }) => reserved.some(({ runnerId, isOwn }) => isOwn && runnerId === id))
  const others = reserved.filter(({ runnerId }) => fit.some(({ id, kind }) => kind === 'reserved' && id === runnerId))
  if (others.length > 0) return othersFirst(run, { others, fit, all: verdicts.length })
  const busy = fit.filter((verdict) => verdict.kind === 'busy')
  if (busy.length > 0) return allBusy(run, { busy: busy.length, all: verdicts.length, own })
  const closed = ['closed', 'unready', 'revoked'].flatMap((kind) => fit.filter((verdict) => verdict.kind === kind))
  if (closed.length > 0) return allClosed(run, closed)
  return {
    code: 'NO_RUNNER',
    message: `None of the ${counted(verdicts.length, 'runner')} of the pool \`${pool}\` takes runs now.`,
    change: 'Whoever runs these machines: start their agents, or add a runner to the pool.',
  }
}

function nobodyCould(run: Situation, verdicts: Verdict[]): CauseFacts {
  const { slots, labels } = readNeeds(run.needs)
  const among = `the ${counted(verdicts.length, 'runner')} of the pool \`${run.pool}\``
  const nowhere = labels.filter((label) => verdicts.every((verdict) => verdict.missing.includes(label)))
  const named = (some: readonly string[]) => some.map((label) => `\`${label}\``).join(', ')
  if (verdicts.every((verdict) => verdict.missing.length > 0))
    return {
      code: 'LABELS_MISSING',
      message:
        nowhere.length > 0
          ? `Its workflow asks for ${named(nowhere)}, which none of ${among} carries.`
          : `Its workflow asks for ${named(labels)}, and none of ${among} carries all of them.`,
      change: `Whoever runs the machines: start an agent with these labels (\`WINDLASS_AGENT_LABELS\`), or give them to the pool: \`windlass pools update ${run.pool}\`. Other \`labels\` in workflow.jsonc count for runs of the version that has them.`,
    }
  const carrying = verdicts.filter((verdict) => verdict.missing.length === 0)
  const most = Math.max(...carrying.map((verdict) => verdict.slots))
  if (most < slots)
    return {
      code: 'SLOTS_MISSING',
      message: `It needs ${counted(slots, 'slot')} of one runner, and ${labels.length > 0 ? 'none that carries its labels' : `none of ${among}`} has more than ${most}.`,
      change:
        'Whoever runs the machines: give one of them more slots (`WINDLASS_AGENT_SLOTS`). Fewer `slots` in workflow.jsonc count for runs of the version that has them.',
    }
  return {
    code: 'RUNNERS_UNFIT',
    message: `None of ${among} can execute runs as the pool wants it.`,
    change: `Whoever runs the machines: what each of them lacks is told below. Or change what the pool asks for: \`windlass pools update ${run.pool}\`.`,
  }
}

function allBusy(
  { pool, needs }: Situation,
  { busy, all, own }: { busy: number; all: number; own: Verdict | undefined },
): CauseFacts {
  const { slots } = readNeeds(needs)
  const room = slots === 1 ? 'has a free slot' : `has ${slots} free slots at once`
  const others = busy === all ? 'all are busy' : `${busy} ${busy === 1 ? 'is' : 'are'} busy, the others take nothing`
  const later =
    ' Once it has waited for half a minute, a runner is kept free for it, if no run before it needs that one.'
  const reservation = own ? ` The runner ${own.name} is kept free for it.` : slots === 1 ? '' : later
  return {
    code: 'RUNNERS_BUSY',
    message: `No runner of the pool \`${pool}\` ${room}; ${others}.${reservation}`,
    change: moreSlots(pool),
  }
}

const moreSlots = (pool: string) =>
  `A run that ends or comes to wait frees a slot; so does one more runner, or more slots: \`windlass runners list --pool ${pool}\`.`

/** Some runners have room for it, and what needs more slots at once goes before it there. */
function othersFirst(
  { pool }: Situation,
  { others, fit, all }: { others: Reserved[]; fit: Verdict[]; all: number },
): CauseFacts {
  const busy = fit.filter(({ kind }) => kind === 'busy').length
  const one = 'is kept free for a run that goes before it and needs many slots at once'
  const many = 'are kept free for runs that go before it and need many slots at once'
  const parts = [
    `${others.length} ${others.length === 1 ? one : many}`,
    busy > 0 && `${busy} ${busy === 1 ? 'is' : 'are'} busy`,
    busy + others.length < all && 'the others take nothing',
  ].filter((part) => part !== false)
  return {
    code: 'RUNNERS_BUSY',
    message: `No runner of the pool \`${pool}\` has room for it: ${parts.join('; ')}.`,
    change: moreSlots(pool),
    runIds: others.slice(0, MOST_NAMED).map(({ runId }) => runId),
  }
}

function allClosed({ pool }: Situation, closed: Verdict[]): CauseFacts {
  const [first] = closed
  const rest = closed.length === 1 ? '' : `; ${counted(closed.length - 1, 'more')} likewise`
  return {
    code: 'RUNNERS_CLOSED',
    message: `No runner of the pool \`${pool}\` is given work: ${first!.name} ${first!.reason}${rest}.`,
    change: changeOf(first!),
  }
}

function changeOf({ kind, id }: Verdict): string {
  if (kind === 'revoked') return 'Add a runner to the pool: `windlass pools token` makes what it takes.'
  const who =
    kind === 'unready'
      ? 'Whoever runs that machine: it goes on by itself once that is mended.'
      : `Whoever closed them: \`windlass runners resume ${id}\`.`
  return `${who} Or add a runner to the pool.`
}

/** An agent had it, and nothing of it has begun. */
function putOffCause(run: Situation, until: Date): Cause {
  return causeOf({
    code: 'PUT_OFF',
    message: `Its agent could not prepare it, for instance as its bundle or its secrets could not be fetched; the last \`run.queued\` of its log says why. It is offered again at ${timeText(until)}.`,
    since: run.queuedAt,
    until,
    change: 'It is tried again by itself; it goes on once what its log names is mended.',
  })
}
