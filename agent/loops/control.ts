import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { CancelOrder, CoordinatorFrame, Placement, Wake } from '@windlass/shared/wire/agent.ts'
import type { Deps } from '../deps.ts'
import type { Upload } from '../link/upload.ts'
import type { Held } from '../run/spool/held.ts'
import { sinceBootMs, type Lease } from '../takeover/records.ts'
import { sendAccepts } from './claim.ts'
import { fence } from './fence.ts'

type Frame<T extends CoordinatorFrame['t']> = Extract<CoordinatorFrame, { t: T }>
type Seq = { run: string; epoch: number; seq: number }

/** What each word of the coordinator means here. */
export function obey(deps: Deps, upload: Upload, frame: CoordinatorFrame): void {
  take(deps, upload, frame)
  upload.settle()
}

function take(deps: Deps, upload: Upload, frame: CoordinatorFrame): void {
  switch (frame.t) {
    case 'welcome':
      return welcome(deps, upload, frame)
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
      return upload.rewind()
    case 'tokens':
      return frame.runs.forEach(({ run, epoch, token }) => deps.lives.find(run, epoch)?.renew(token))
    case 'wake':
      return wake(deps, frame.runs)
    case 'refused':
      return refused(deps, frame)
    default:
      // A newer coordinator may know more words than we do.
      return deps.log.debug('link.unknown-frame', { t: (frame as { t: unknown }).t })
  }
}

/** What comes with protocol 3: how to behave, whether to ask for work, and what time it is. */
function heed(deps: Deps, { settings, intake, now }: Partial<Frame<'welcome' | 'beat'>>): void {
  if (settings) deps.settings.current = settings
  if (intake) deps.intake.heard(intake)
  if (now !== undefined) deps.clock.learn(now)
}

function beat(deps: Deps, frame: Frame<'beat'>): void {
  // It may have lain here while this machine slept.
  fence(deps)
  deps.beats.answered(frame.n)
  fence(deps)
  deps.takeover.leaseFrom(leaseOf(deps))
  probe('lease.told', { beat: frame.n })
  heed(deps, frame)
  dropStale(deps, frame.stale)
  cancel(deps, frame.cancel)
}

function welcome(deps: Deps, upload: Upload, frame: Frame<'welcome'>): void {
  heed(deps, frame)
  deps.start.welcomed().catch((error: unknown) => deps.log.error('instance.unwritten', { error }))
  dropStale(deps, frame.stale)
  for (const held of deps.spool.held()) held.sent = held.acked
  resumeFrom(deps, frame.resume)
  cancel(deps, frame.cancel)
  sendAccepts(deps, deps.lives.all())
  upload.rewind()
  deps.beats.bell.ring()
  deps.claimBell.ring()
  deps.log('link.up', { holds: deps.spool.holds().length })
}

function accepted(deps: Deps, { runs, no }: Frame<'accepted'>): void {
  for (const [run, epoch] of runs) deps.lives.find(run, epoch)?.answer('ours')
  for (const [run, epoch] of no) deps.lives.find(run, epoch)?.answer('refused')
  fence(deps)
}

/** Killed without a report and forgotten. */
function dropStale(deps: Deps, placements: readonly Placement[]): void {
  for (const [run, epoch] of placements) {
    const live = deps.lives.find(run, epoch)
    deps.spool.forget(run, epoch)
    // One that has ended is often called stale by a heartbeat that overtook the acknowledgement of its end.
    if (live) deps.log.warn('run.stale', { run, epoch })
    live?.end('stale')
  }
}

function cancel(deps: Deps, orders: readonly CancelOrder[]): void {
  for (const order of orders) {
    const live = deps.lives.find(order.run, order.epoch)
    if (!live) continue
    // A parked program cleans up where it is, without a slot; nobody gives it up any more.
    deps.parking.left(live)
    live.cancel(order)
  }
}

function resumeFrom(deps: Deps, seqs: readonly Seq[]): void {
  for (const each of seqs) {
    const held = deps.spool.find(each.run, each.epoch)
    if (held) held.sent = each.seq
    acknowledge(deps, each)
  }
}

/** Whoever waits for this hears of it: a step for its result to be safe, a process to be given up. */
function acknowledge(deps: Deps, { run, epoch, seq }: Seq): void {
  deps.spool.ack(run, epoch, seq)
  const live = deps.lives.find(run, epoch)
  if (!live) return
  live.committed(seq)
  deps.parking.committed(live, seq)
}

function wake(deps: Deps, wakes: readonly Wake[]): void {
  for (const { run, epoch, completions } of wakes) {
    const live = deps.lives.find(run, epoch)
    if (live) deps.parking.wake(live, completions)
  }
}

/** Entries that were acknowledged are gone here. A coordinator that lacks them was set back, and its run has to begin anew. */
export function giveUpGap(deps: Deps, { run, epoch, sent, acked }: Held): void {
  deps.log.error('spool.gap', { run, epoch, coordinatorHas: sent, acknowledged: acked })
  dropStale(deps, [[run, epoch]])
}

function leaseOf({ beats, sleeps, settings }: Deps): Lease {
  sleeps.look()
  const heldFrom = beats.heldFrom()
  const agoMs = performance.now() - heldFrom + sleeps.since(heldFrom)
  return { fromMs: sinceBootMs() - agoMs, fenceMs: settings.current.fenceMs }
}

/** The end of this connection, and there will be no other. What runs here is nobody's any more. */
function refused(deps: Deps, { code, message }: Frame<'refused'>): void {
  deps.log.error('link.refused', { code, reason: message })
  deps.intake.leave()
  for (const live of deps.lives.all()) live.end(code === 'REVOKED' ? 'revoked' : 'fenced')
  if (code === 'REVOKED') void sayLastWords(deps)
}

/** The coordinator takes the ends of runs for some seconds yet; then they need not wait for their leases to run out. */
async function sayLastWords({ lives, spool, link, config }: Deps): Promise<void> {
  const { lastWordsMs } = config.paces
  const end = performance.now() + lastWordsMs
  await Promise.race([lives.empty(), pause(lastWordsMs)])
  spool.flush()
  while (link.isReady && spool.held().length > 0 && performance.now() < end) await pause(10)
  link.drop('refused for good')
}
