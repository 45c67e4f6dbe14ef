import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { InForce } from './config.ts'
import type { Intake } from './intake.ts'
import type { Link } from './link/link.ts'
import type { AgentRuns } from './run/agent-runs.ts'
import type { Spool } from './run/spool/spool.ts'

/** How a stop was asked for, from patient to hard; each step lies behind the one before it. */
export interface Urgency {
  /** Takes no more work and waits for what runs. */
  readonly leave: AbortSignal
  /** Programs are asked to stop within their grace. */
  readonly ask: AbortSignal
  readonly kill: AbortSignal
  /** One step further; or, with `withinMs`, all of them when that is over, and the first one now. */
  readonly raise: (order?: { withinMs: number }) => void
  /** All steps at once. */
  killNow(): void
  mostMs(): number
}

export function createUrgency(): Urgency {
  const steps = [new AbortController(), new AbortController(), new AbortController()] as const
  const [leave, ask, kill] = steps
  const killNow = () => steps.forEach((step) => step.abort())
  let mostMs = Infinity
  return {
    leave: leave.signal,
    ask: ask.signal,
    kill: kill.signal,
    raise(order) {
      if (order === undefined) return steps.find((step) => !step.signal.aborted)?.abort()
      mostMs = Math.min(mostMs, order.withinMs)
      setTimeout(killNow, order.withinMs).unref()
      leave.abort()
    },
    killNow,
    mostMs: () => mostMs,
  }
}

/** Told to the coordinator at once and with each new connection: it may not have heard it. */
export interface Leaving {
  begin(deadlineMs: number): void
  again(): void
}

export function createLeaving(link: Pick<Link, 'send'>): Leaving {
  let endsAt: number | undefined
  const again = () => {
    if (endsAt === undefined) return
    const deadlineMs = Math.max(0, Math.round(endsAt - performance.now()))
    link.send({ t: 'leave', reason: 'the agent is being stopped', deadlineMs })
  }
  return {
    begin(deadlineMs) {
      endsAt = performance.now() + deadlineMs
      again()
    },
    again,
  }
}

/** How long programs that have outstayed the patience have for closing their files. */
const HURRIED_GRACE_MS = 3_000
const LOG_EVERY_MS = 30_000
const LOGGED_RUNS = 20

interface FinishNeeds {
  inForce(): InForce
  intake: Pick<Intake, 'leave'>
  leaving: Pick<Leaving, 'begin'>
  agentRuns: AgentRuns
  spool: Pick<Spool, 'flush'>
  log: Log
}

/**
 * What only waits is given up at once, and what has not begun. Programs that compute may finish for a while; then they are asked to stop, and killed where
 * they do not. What was cut off is reported as lost, so that it begins anew elsewhere.
 */
export async function finishRuns(deps: FinishNeeds, urgency: Urgency): Promise<void> {
  // Programs have their grace behind it.
  const patienceMs = Math.min(deps.inForce().stopMs, Math.max(0, urgency.mostMs() - HURRIED_GRACE_MS))
  deps.intake.leave()
  deps.leaving.begin(patienceMs)
  for (const agentRun of deps.agentRuns.all()) if (!agentRun.hasProgram) agentRun.handOver(0)
  const over = new AbortController()
  void tellWhatIsWaitedFor(deps, patienceMs, over.signal)
  await Promise.race([deps.agentRuns.empty(), pause(patienceMs, urgency.ask)])
  const mostMs = urgency.ask.aborted ? Infinity : HURRIED_GRACE_MS
  for (const agentRun of deps.agentRuns.all()) agentRun.handOver(mostMs)
  await Promise.race([deps.agentRuns.empty(), fired(urgency.kill)])
  for (const agentRun of deps.agentRuns.all()) agentRun.end('shutdown')
  await deps.agentRuns.empty()
  over.abort()
  deps.spool.flush()
}

async function tellWhatIsWaitedFor(
  { agentRuns, log }: Pick<FinishNeeds, 'agentRuns' | 'log'>,
  patienceMs: number,
  signal: AbortSignal,
): Promise<void> {
  const began = performance.now()
  while (!signal.aborted && agentRuns.size > 0) {
    const forMs = Math.round(performance.now() - began)
    const runs = agentRuns.all().map(({ offer }) => offer.run)
    const advice = 'a second signal asks the programs to stop, a third one kills them'
    log('agent.waiting', {
      count: runs.length,
      runs: runs.slice(0, LOGGED_RUNS),
      forMs,
      leftMs: Math.max(0, patienceMs - forMs),
      advice,
    })
    await pause(LOG_EVERY_MS, signal)
  }
}

export function fired(signal: AbortSignal): Promise<undefined> {
  if (signal.aborted) return Promise.resolve(undefined)
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(undefined), { once: true }))
}
