import type { Runner } from '@windlass/shared/model/runner.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import { ApiError } from '../../client/index.ts'
import { isPassing } from '../../client/patience.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { print, safe } from '../terminal.ts'
import { DrainProgress, countsText } from './drain-progress.ts'

const LOOK_MS = 1_000
const ANSWER_MS = 10_000
const BACKOFF = { firstMs: 500, capMs: 10_000 }
/** The clock of the service is known to the second, and its word comes by asking. */
const SLACK_MS = 2_000
/**
 * The longest grace that a descriptor may ask for, and the proof that the tree is empty: what a cancel at the deadline
 * may take.
 */
const CANCEL_MS = 5 * 60_000 + 15_000

/**
 * Waits until the coordinator says that nothing live is left at the epoch of this drain: 0. It alone knows; what we
 * count on the way is for the eyes. A coordinator that is away is asked again until the deadline.
 */
export async function drained(session: Session, asked: Runner): Promise<number> {
  const stop = stopper(asked)
  try {
    const last = await watch(session, asked, stop.signal)
    session.progress.end()
    if (session.isJson) print(JSON.stringify({ runner: last }))
    else print(`${safe(last.name, process.stdout)} is drained (epoch ${last.intake.epoch})`)
    return EXIT.ok
  } finally {
    stop.over()
    session.progress.end()
  }
}

async function watch(session: Session, asked: Runner, signal: AbortSignal): Promise<Runner> {
  const progress = new DrainProgress(session, signal)
  const clock = await drainClock(session.settings.url, asked, signal)
  let seen = asked
  for (let failures = 0; ;) {
    if (failures === 0 && isOver(seen, asked)) return seen
    if (clock.waitMs() <= 0) throw late(seen)
    if (failures === 0) await progress.tell(seen, clock.leftMs())
    else progress.away(seen)
    await pause(Math.min(LOOK_MS + (failures && backoffMs(failures, BACKOFF)), Math.max(0, clock.waitMs())), signal)
    const found = await look(session, asked, signal)
    failures = found ? 0 : failures + 1
    seen = found ?? seen
  }
}

/** Nothing where the coordinator is away for now. */
async function look(session: Session, { id, name }: Runner, signal: AbortSignal): Promise<Runner | undefined> {
  signal.throwIfAborted()
  try {
    return (await session.client.runners.get({ runner: id }, { signal, deadlineMs: ANSWER_MS })).runner
  } catch (error) {
    signal.throwIfAborted()
    if (!(error instanceof ApiError)) throw error
    if (error.code === 'NOT_FOUND') throw superseded(`${name} was deregistered while it was drained.`, 'runners list')
    if (isPassing(error)) return undefined
    throw error
  }
}

/** The server's word for this very drain. Another epoch is another decision, of somebody else. */
function isOver({ id, name, intake }: Runner, asked: Runner): boolean {
  if (intake.epoch === asked.intake.epoch) return intake.state === 'drained'
  const by = intake.by ? ` by ${intake.by.name || intake.by.kind}` : ''
  const why = intake.reason === '' ? '' : `: ${intake.reason}`
  const what = intake.state === 'open' ? 'was resumed' : `is ${intake.state}`
  const epochs = `epoch ${intake.epoch} instead of ${asked.intake.epoch}`
  throw superseded(`This drain of ${name} no longer counts: it ${what}${by} (${epochs})${why}.`, `runners get ${id}`)
}

function superseded(message: string, next: string): Failure {
  return new Failure(message, `windlass ${next}`, EXIT.superseded, 'SUPERSEDED')
}

function late({ id, name, live, intake }: Runner): Failure {
  const what =
    intake.onDeadline === 'cancel'
      ? 'what was cancelled then has not ended'
      : 'it goes on to the end of what it executes'
  return new Failure(
    `The deadline has passed and ${name} is not drained: ${countsText(live)} left; ${what}.`,
    `windlass runners plan ${id}`,
    EXIT.deadline,
    'DEADLINE_PASSED',
  )
}

/**
 * Counted on our monotonic clock from the answer on, and from what the clock of the service said then: walls differ.
 */
async function drainClock(url: string, { intake }: Runner, signal: AbortSignal) {
  const { since, deadlineAt, onDeadline } = intake
  const startedAt = performance.now()
  const wholeMs = (deadlineAt ?? since) - ((await serviceTime(url, signal)) ?? since)
  const leftMs = () => wholeMs - (performance.now() - startedAt)
  // What is cancelled at the deadline is waited for: it ends soon, and the machine may be empty then.
  const waitMs = () => leftMs() + SLACK_MS + (onDeadline === 'cancel' ? CANCEL_MS : 0)
  return { leftMs, waitMs }
}

/** By the header that every answer has. Nothing where it is missing. */
async function serviceTime(url: string, signal: AbortSignal): Promise<number | undefined> {
  const both = AbortSignal.any([signal, AbortSignal.timeout(ANSWER_MS)])
  try {
    const response = await fetch(`${url}/healthz`, { signal: both, redirect: 'manual' })
    await response.body?.cancel()
    const at = Date.parse(response.headers.get('date') ?? '')
    return Number.isFinite(at) ? at : undefined
  } catch {
    signal.throwIfAborted()
    return undefined
  }
}

/** Ctrl-C and SIGTERM end the waiting, and nothing else. */
function stopper({ id, name }: Runner) {
  const controller = new AbortController()
  const resume = `windlass runners resume ${id} to undo it`
  const next = `windlass runners get ${id} to look, the same command again to wait, ${resume}`
  const interrupt = () =>
    controller.abort(
      new Failure(`No longer waiting; the drain of ${name} goes on.`, next, EXIT.interrupted, 'INTERRUPTED'),
    )
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  return {
    signal: controller.signal,
    over: () => {
      for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
    },
  }
}
