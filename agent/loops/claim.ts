import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { backoffMs, pause } from '@windlass/shared/time.ts'
import type { AgentSettings, Offer } from '@windlass/shared/wire/agent.ts'
import type { Bell } from '../bell.ts'
import type { Checks } from '../checks/checks.ts'
import type { Facts } from '../facts.ts'
import type { Intake } from '../intake.ts'
import type { Link } from '../link/link.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { Paces } from '../paces.ts'
import { execute } from '../run/execute.ts'
import { AgentRun } from '../run/agent-run.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { Slots } from '../run/slots.ts'
import type { Spool } from '../run/spool/spool.ts'
import type { Activity } from '../status/activity.ts'
import { pollWhileRight } from './poll.ts'

/** An outage of the database alone is over without a word to agents: so long do runs wait for one after it. */
const BACKOFF = { firstMs: 250, capMs: 5_000 }
/** After polls that were answered too soon. */
const HASTY_BACKOFF = { firstMs: 250, capMs: 30_000 }
const LONGEST_POLL_MS = 25_000
/** With the way to us and back it has to stay under the time of an offer. */
const LATER_MS = 5_000
/** An answer without work should have been waited for; if it was not, something between us and the coordinator is odd. */
const HASTY_MS = 50

type ClaimNeeds = Needs<typeof mayAsk | typeof pollOnce> & {
  claimBell: Bell
  checks: Pick<Checks, 'look'>
  link: Pick<Link, 'isReady' | 'down'>
  config: { paces: Pick<Paces, 'unreadyMs'> }
}

/**
 * Asks for as much work as there are free slots, takes it, and asks again; one poll at a time, and none while the agent is to take
 * no work or something on the host is in the way. Runs that go on come first.
 */
export async function claimLoop(deps: ClaimNeeds, signal: AbortSignal): Promise<void> {
  let closing = new AbortController()
  const look = () => {
    if (!mayAsk(deps)) closing.abort()
    deps.claimBell.ring()
  }
  deps.intake.onChange(look)
  deps.facts.onChange(look)
  let failures = 0
  while (!signal.aborted) {
    if (deps.slots.free() <= 0 || !deps.link.isReady || !deps.intake.isOpen()) {
      await deps.claimBell.wait(signal)
      continue
    }
    await untilFired(signal, deps.checks.look('all'))
    if (signal.aborted) return
    if (!deps.facts.isReady()) {
      await pause(deps.config.paces.unreadyMs, signal)
      continue
    }
    closing = new AbortController()
    let backoff = BACKOFF
    try {
      const isHasty = await pollOnce(deps, signal, closing.signal)
      failures = isHasty ? failures + 1 : 0
      backoff = HASTY_BACKOFF
    } catch (error) {
      if (signal.aborted) return
      deps.log.warn('claims.failed', { failures, reason: error instanceof Error ? error.message : String(error) })
      failures += 1
    }
    if (failures > 0) {
      const { down } = deps.link
      await pause(backoffMs(failures, backoff), AbortSignal.any([signal, down]))
      // The next connection tells when to ask again, and what failed before says nothing about it.
      if (down.aborted) failures = 0
    }
  }
}

/** Waits to the end of something, but no longer than the agent is to work: a hook may take its time. */
function untilFired(signal: AbortSignal, promise: Promise<void>): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => resolve()
    signal.addEventListener('abort', stop, { once: true })
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', stop))
  })
}

/** Not while it is to take no work, nor while something on this machine is in the way. */
function mayAsk({ intake, facts }: { intake: Intake; facts: Facts }): boolean {
  return intake.isOpen() && facts.isReady()
}

type PollNeeds = Needs<typeof pollWhileRight | typeof takeAll> & {
  settings: { readonly current: AgentSettings }
  activity: Pick<Activity, 'polled'>
}

/** `closing`: no work is wanted any more, but what comes is answered. Returns whether the answer came too soon. */
async function pollOnce(deps: PollNeeds, signal: AbortSignal, closing: AbortSignal): Promise<boolean> {
  // Asked anew: the checks have taken their time.
  const free = deps.slots.free()
  if (free <= 0 || !mayAsk(deps)) return false
  const askedAt = performance.now()
  const waitMs = Math.min(deps.settings.current.pollMs, LONGEST_POLL_MS)
  deps.activity.polled()
  probe('poll.began', { slots: free })
  const { offers, withdrawn } = await pollWhileRight(deps, { free, signal, closing }, waitMs)
  probe('poll.ended', { offers: offers.length })
  if (mayAsk(deps)) takeAll(deps, offers, AbortSignal.any([signal, closing]))
  else decline(deps, offers)
  // Else it might reach the coordinator after the next poll, and end that.
  await withdrawn
  return offers.length === 0 && !withdrawn && waitMs > HASTY_MS && performance.now() - askedAt < HASTY_MS
}

/**
 * Runs that were woken meanwhile have taken slots that the poll had asked for. And a former placement of the same run
 * may still be ending here: a database that was set back gives it out again at once.
 */
function takeAll(deps: Needs<typeof takeLater>, offers: readonly Offer[], signal: AbortSignal): void {
  let free = deps.slots.free()
  const here = new Set(deps.agentRuns.all().map(({ offer }) => offer.run))
  const fitting = offers.filter(({ run, slots }) => {
    if (here.has(run)) return false
    free -= slots
    return free >= 0
  })
  if (fitting.length > 0) take(deps, fitting)
  for (const offer of offers.filter((each) => !fitting.includes(each))) void takeLater(deps, offer, signal)
}

type TakeLaterNeeds = Needs<typeof take | typeof decline | typeof mayAsk> & {
  agentRuns: AgentRuns
  slots: Pick<Slots, 'free' | 'take'>
  config: { parking: { wakeMs: number } }
}

/** Accepted when nothing of it is left here and there is a slot for it; if that takes long, it goes back as it came. */
async function takeLater(deps: TakeLaterNeeds, offer: Offer, signal: AbortSignal): Promise<void> {
  const taken = new AbortController()
  const accept = () => {
    taken.abort()
    try {
      if (mayAsk(deps)) return take(deps, [offer])
    } catch (error) {
      // The run that has freed the slot or ended goes on, whatever the disk says.
      deps.log.warn('offer.failed', { run: offer.run, epoch: offer.epoch, error })
    }
    decline(deps, [offer])
  }
  let giveUpSlot = () => {}
  const giveUpRun = deps.agentRuns.whenGone(offer.run, () => {
    giveUpSlot = deps.slots.take(accept, offer.slots)
  })
  const waitMs = Math.min(deps.config.parking.wakeMs, LATER_MS)
  await pause(waitMs, AbortSignal.any([signal, taken.signal]))
  if (taken.signal.aborted) return
  giveUpRun()
  giveUpSlot()
  decline(deps, [offer])
}

/** Where this is lost they go back by themselves, a little later. No attempt is burned. */
function decline(deps: { link: Pick<Link, 'send'>; log: Log }, offers: readonly Offer[]): void {
  if (offers.length === 0) return
  const runs = offers.map(({ run, epoch }) => [run, epoch] as const)
  for (const { run, epoch } of offers) deps.log('offer.left', { run, epoch })
  deps.link.send({ t: 'decline', runs })
}

type TakeNeeds = Needs<typeof runToItsEnd | typeof sendAccepts> & {
  spool: Pick<Spool, 'find' | 'open'>
  activity: Pick<Activity, 'claimed'>
  config: { paces: Pick<Paces, 'acceptMs'> }
}

/** From the answer to the sending of `accept` there is one write into the spool, and nothing that waits. */
function take(deps: TakeNeeds, offers: Offer[]): void {
  const fresh = offers.filter(({ run, epoch }) => !deps.spool.find(run, epoch))
  deps.spool.open(fresh.map(({ run, epoch }) => [run, epoch] as const))
  deps.activity.claimed(fresh.length)
  const agentRuns = fresh.map((offer) => new AgentRun(offer, deps.config.paces.acceptMs))
  for (const agentRun of agentRuns) deps.agentRuns.add(agentRun)
  sendAccepts(deps, agentRuns)
  for (const agentRun of agentRuns) void runToItsEnd(deps, agentRun)
}

/** Also for those whose `accept` may have been lost with a connection. */
export function sendAccepts(deps: { link: Pick<Link, 'send'> }, agentRuns: readonly AgentRun[]): void {
  const open = agentRuns.filter((agentRun) => !agentRun.isAnswered)
  if (open.length === 0) return
  const now = performance.now()
  const runs = open.map(({ offer }) => [offer.run, offer.epoch] as const)
  if (!deps.link.send({ t: 'accept', runs })) return
  for (const agentRun of open) agentRun.acceptSentAt = Math.min(agentRun.acceptSentAt, now)
}

async function runToItsEnd(deps: Needs<typeof execute> & { agentRuns: AgentRuns }, agentRun: AgentRun): Promise<void> {
  const { run, epoch } = agentRun.offer
  try {
    await execute(deps, agentRun)
  } catch (error) {
    deps.log.error('run.broken', { run, epoch, error })
    const reason = 'the agent could not execute it; the log of the agent says why'
    void deps.spool.append(run, epoch, [['end', Date.now(), { how: 'lost', reason }, 0]])
  } finally {
    deps.agentRuns.remove(agentRun)
  }
}
