import type { Log } from '@windlass/shared/log.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS, lostWhile } from '@windlass/shared/model/lost-reasons.ts'
import { probe } from '@windlass/shared/probe.ts'
import { atMost, pause } from '@windlass/shared/time.ts'
import type { AgentSettings, CancelOrder, CoordinatorFrame, Placement, Wake } from '@windlass/shared/wire/agent.ts'
import type { Bell } from '../bell.ts'
import type { ThisStart } from '../instance.ts'
import type { Intake } from '../intake.ts'
import type { Beats } from '../lease/beats.ts'
import { fence, leaseOf } from '../lease/fence.ts'
import type { Clock } from '../link/clock.ts'
import type { Link } from '../link/link.ts'
import type { Upload } from '../link/upload.ts'
import type { Held } from '../run/spool/held.ts'
import type { Spool } from '../run/spool/spool.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { Paces } from '../paces.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { Parking } from '../run/parking.ts'
import type { Takeover } from '../takeover/takeover.ts'
import { sendAccepts } from './claim.ts'

type Frame<T extends CoordinatorFrame['t']> = Extract<CoordinatorFrame, { t: T }>
type Seq = { run: string; epoch: number; seq: number }

type TakeNeeds = Needs<typeof welcome | typeof beat | typeof accepted | typeof wake | typeof refused>

/** What each word of the coordinator means here. */
export function obey(deps: TakeNeeds, frame: CoordinatorFrame): void {
  take(deps, frame)
  deps.upload.settle()
}

function take(deps: TakeNeeds, frame: CoordinatorFrame): void {
  switch (frame.t) {
    case 'welcome':
      return welcome(deps, frame)
    case 'accepted':
      return accepted(deps, frame)
    case 'ack':
      return frame.acks.forEach((each) => acknowledge(deps, each))
    case 'beat':
      return beat(deps, frame)
    case 'intake':
      return deps.intake.heard(frame.intake)
    case 'cancel':
      return cancel(deps, frame.runs)
    case 'stale':
      return dropStale(deps, frame.runs)
    case 'resume':
      resumeFrom(deps, frame.runs)
      return deps.upload.rewind()
    case 'tokens':
      return frame.runs.forEach(({ run, epoch, token }) => deps.agentRuns.find(run, epoch)?.renew(token))
    case 'wake':
      return wake(deps, frame.runs)
    case 'refused':
      return refused(deps, frame)
    default:
      // A newer coordinator may know more words than we do.
      return deps.log.debug('link.unknown-frame', { t: (frame as { t: unknown }).t })
  }
}

/** How to behave, whether to ask for work, and what time it is. */
function heed(
  deps: { settings: { current: AgentSettings }; intake: Pick<Intake, 'heard'>; clock: Pick<Clock, 'learn'> },
  { settings, intake, now }: Partial<Frame<'welcome' | 'beat'>>,
): void {
  if (settings) deps.settings.current = settings
  if (intake) deps.intake.heard(intake)
  if (now !== undefined) deps.clock.learn(now)
}

type BeatNeeds = Needs<typeof fence | typeof leaseOf | typeof heed | typeof dropStale | typeof cancel> & {
  beats: Pick<Beats, 'answered'>
  takeover: Pick<Takeover, 'leaseFrom'>
  start: Pick<ThisStart, 'save'>
}

function beat(deps: BeatNeeds, frame: Frame<'beat'>): void {
  // It may have lain here while this machine slept.
  fence(deps)
  deps.beats.answered(frame.n)
  fence(deps)
  deps.takeover.leaseFrom(leaseOf(deps))
  probe('lease.told', { beat: frame.n })
  heed(deps, frame)
  // The welcome has said it already where this fails.
  deps.start.save().catch((error: unknown) => deps.log.debug('instance.unwritten', { error }))
  dropStale(deps, frame.stale)
  cancel(deps, frame.cancel)
}

type WelcomeNeeds = Needs<
  typeof heed | typeof dropStale | typeof resumeFrom | typeof reportKilled | typeof cancel | typeof sendAccepts
> & {
  start: Pick<ThisStart, 'welcomed'>
  upload: Upload
  beats: Pick<Beats, 'bell'>
  claimBell: Bell
}

function welcome(deps: WelcomeNeeds, frame: Frame<'welcome'>): void {
  heed(deps, frame)
  deps.start.welcomed(frame.cluster).catch((error: unknown) => deps.log.error('instance.unwritten', { error }))
  dropStale(deps, frame.stale)
  for (const held of deps.spool.held()) held.sent = held.acked
  resumeFrom(deps, frame.resume)
  reportKilled(deps)
  cancel(deps, frame.cancel)
  sendAccepts(deps, deps.agentRuns.all())
  deps.upload.rewind()
  deps.beats.bell.ring()
  deps.claimBell.ring()
  deps.log('link.up', { holds: deps.spool.holds().length })
}

function accepted(deps: Needs<typeof fence>, { runs, no }: Frame<'accepted'>): void {
  for (const [run, epoch] of runs) deps.agentRuns.find(run, epoch)?.answer('ours')
  for (const [run, epoch] of no) deps.agentRuns.find(run, epoch)?.answer('refused')
  fence(deps)
}

/** Killed without a report and forgotten. */
function dropStale(deps: { agentRuns: AgentRuns; spool: Spool; log: Log }, placements: readonly Placement[]): void {
  for (const [run, epoch] of placements) {
    const agentRun = deps.agentRuns.find(run, epoch)
    deps.spool.forget(run, epoch)
    // One that has ended is often called stale by a heartbeat that overtook the acknowledgement of its end.
    if (agentRun) deps.log.warn('run.stale', { run, epoch })
    agentRun?.end('stale')
  }
}

function cancel(deps: { agentRuns: AgentRuns; parking: Parking }, orders: readonly CancelOrder[]): void {
  for (const order of orders) {
    const agentRun = deps.agentRuns.find(order.run, order.epoch)
    if (!agentRun) continue
    // A parked program cleans up where it is, without a slot; nobody gives it up any more.
    deps.parking.left(agentRun)
    agentRun.cancel(order)
  }
}

function resumeFrom(deps: Needs<typeof acknowledge | typeof giveUp> & { log: Log }, seqs: readonly Seq[]): void {
  for (const each of seqs) {
    const held = deps.spool.find(each.run, each.epoch)
    // What was never sent from here was said by a later state of this machine, which was set back since, or lost its
    // last writes.
    if (held && each.seq > held.everSent) {
      const { run, epoch, everSent } = held
      deps.log.error('spool.set-back', { run, epoch, coordinatorHas: each.seq, sent: everSent })
      giveUp(deps, held, { seq: each.seq, why: 'setBack' })
      continue
    }
    if (held) held.sent = each.seq
    acknowledge(deps, each)
  }
}

type GiveUpNeeds = { spool: Pick<Spool, 'setBack' | 'append'>; agentRuns: AgentRuns }

/**
 * What the coordinator has and what was written here do not fit together any more. A program that goes on from here
 * would say other things under the same numbers.
 */
function giveUp(
  { spool, agentRuns }: GiveUpNeeds,
  { run, epoch, isEnded }: Held,
  { seq, why }: { seq: number; why: 'setBack' | 'incomplete' },
): void {
  spool.setBack(run, epoch, seq)
  const agentRun = agentRuns.find(run, epoch)
  // Its end is said when nothing of it is left.
  if (agentRun && !isEnded) return agentRun.end(why)
  const ending = { how: 'lost' as const, reason: LOST_REASONS[why] }
  void spool.append(run, epoch, [['end', Date.now(), ending, 0]])
}

/**
 * What an earlier process had taken and did not bring to an end died with it. Said after the first welcome: of entries
 * that its disk has lost, the coordinator may have one under the number of this end.
 */
function reportKilled({ spool, killed, log }: { spool: Spool; killed: Placement[]; log: Log }): void {
  const open = killed.splice(0).flatMap(([run, epoch]) => spool.find(run, epoch) ?? [])
  const lost = open.filter(({ isEnded }) => !isEnded)
  for (const held of lost) void spool.append(held.run, held.epoch, [['end', Date.now(), endOfKilled(held), 0]])
  spool.flush()
  const [back, gone] = [lost.filter(({ isUnbegun }) => isUnbegun), lost.filter(({ isUnbegun }) => !isUnbegun)]
  if (back.length > 0) log.warn('runs.unbegun', { runs: back.map(({ run }) => run) })
  if (gone.length > 0) log.warn('runs.lost', { runs: gone.map(({ run }) => run) })
}

/** A start is written down after it, so that without one a program may have begun all the same. */
function endOfKilled({ isUnbegun }: Held): Ending {
  if (isUnbegun) return { how: 'unready', reason: lostWhile('killed', 'its program had not begun') }
  return { how: 'lost', reason: LOST_REASONS.killed }
}

/** Whoever waits for this hears of it: a step for its result to be safe, a process to be given up. */
function acknowledge(deps: { spool: Spool; agentRuns: AgentRuns; parking: Parking }, { run, epoch, seq }: Seq): void {
  deps.spool.ack(run, epoch, seq)
  const agentRun = deps.agentRuns.find(run, epoch)
  if (!agentRun) return
  agentRun.committed(seq)
  deps.parking.committed(agentRun, seq)
}

function wake(deps: { agentRuns: AgentRuns; parking: Parking }, wakes: readonly Wake[]): void {
  for (const { run, epoch, completions } of wakes) {
    const agentRun = deps.agentRuns.find(run, epoch)
    if (agentRun) deps.parking.wake(agentRun, completions)
  }
}

/**
 * The next entries are gone here: their part of the disk is damaged, or they were acknowledged by a coordinator that has
 * lost them since.
 */
export function giveUpGap(deps: GiveUpNeeds & { log: Log }, held: Held): void {
  const { run, epoch, sent, acked } = held
  deps.log.error('spool.gap', { run, epoch, coordinatorHas: sent, acknowledged: acked })
  giveUp(deps, held, { seq: sent, why: 'incomplete' })
}

/** The end of this connection, and there will be no other. What runs here is nobody's any more. */
function refused(
  deps: Needs<typeof flushAndDrop> & { intake: Pick<Intake, 'leave'>; log: Log },
  { code, message }: Frame<'refused'>,
): void {
  deps.log.error('link.refused', { code, reason: message })
  deps.intake.leave()
  for (const agentRun of deps.agentRuns.all()) agentRun.end(code === 'REVOKED' ? 'revoked' : 'fenced')
  if (code === 'REVOKED') void flushAndDrop(deps)
}

interface FlushNeeds {
  agentRuns: AgentRuns
  spool: Pick<Spool, 'flush' | 'held'>
  link: Pick<Link, 'isReady' | 'drop'>
  config: { paces: Pick<Paces, 'lastFlushMs'> }
}

/** The coordinator takes the ends of runs for some seconds yet; then they need not wait for their leases to run out. */
async function flushAndDrop({ agentRuns, spool, link, config }: FlushNeeds): Promise<void> {
  const { lastFlushMs } = config.paces
  const end = performance.now() + lastFlushMs
  await atMost(lastFlushMs, agentRuns.empty())
  spool.flush()
  while (link.isReady && spool.held().length > 0 && performance.now() < end) await pause(10)
  link.drop('refused for good')
}
