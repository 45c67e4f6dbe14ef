import { setTimeout as delay } from 'node:timers/promises'
import { NOT_TAKEN_BACK } from '@windlass/shared/model/lost-reasons.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { Link } from '../link/link.ts'
import { sinceBootMs, startedAt } from '../os/process-id.ts'
import { ended, follow, lost, startOf, type ExecuteNeeds } from '../run/execute.ts'
import type { HostProcess } from '../run/hosts/host-process.ts'
import { AgentRun } from '../run/agent-run.ts'
import { MOST_BYTES } from '../run/given-secrets.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { TakenBack } from '../run/program/program.ts'
import { NO_JOURNAL } from '../run/program/recorded-journal.ts'
import type { Processes } from '../run/hosts/processes.ts'
import { reportTo } from '../run/report.ts'
import type { RunSecrets } from '../run/secrets.ts'
import type { FrameMark, Held } from '../run/spool/held.ts'
import type { Spool } from '../run/spool/spool.ts'
import { heard, timeOf, unlessOver, type Heard } from './unless-over.ts'
import type { ProgramRecord, Lease, Records } from './records.ts'
import { type Lines, openRendezvous } from './rendezvous.ts'

export type KnownMark = FrameMark & { frames: number }

/** What the spool of the agent before this one has of a program that may go on; undefined when it cannot. */
export function markOfHeld(held: Held | undefined): KnownMark | undefined {
  const mark = held && !held.isEnded && !held.gap ? held.mark : undefined
  return mark && mark.frames !== null ? { ...mark, frames: mark.frames } : undefined
}

const LOOK_MS = 20
const ASK_MS = 1_000
/** The token in a record may be of an hour ago. */
const OLD = -Infinity

type TakeBackNeeds = Needs<typeof goOn | typeof lost | typeof allAcked> & {
  agentRuns: AgentRuns
  records: Pick<Records, 'rendezvous'>
  link: Pick<Link, 'send'>
}

/**
 * A program of the agent before this one goes on here, in the same attempt. Its lease is what that one had: when nothing is heard of the
 * coordinator before it is over, the program is fenced like any other.
 */
export async function takeBack(
  deps: TakeBackNeeds,
  record: ProgramRecord,
  mark: KnownMark,
  lease: Lease,
): Promise<void> {
  const { run, epoch } = record.offer
  const agentRun = new AgentRun(record.offer, lease.fenceMs)
  agentRun.acceptSentAt = performance.now() - (sinceBootMs() - lease.fromMs)
  agentRun.answer('ours')
  agentRun.isTakenBack = true
  agentRun.isParked = mark.isParked
  agentRun.tokenAt = OLD
  agentRun.secretBytes = record.secretBytes ?? MOST_BYTES
  deps.agentRuns.add(agentRun)
  // At once: a full disk is given back what no run uses.
  const release = deps.bundles.retain(record.offer.bundle)
  let host: TakenBack['host'] | undefined
  let lines: Lines | undefined
  try {
    const { records, processes } = deps
    lines = await openRendezvous(records.rendezvous(record.marker), record.uid, (files, act) =>
      processes.during(record, files, act),
    )
    host = deps.processes.adopt(record, lines)
    const found = { host, lines, agentRun, record, mark, isParked: mark.isParked }
    const ready = await unlessOver(found, (signal) => makeReady(deps, found, signal))
    if ('ending' in ready) return await endSilent(deps, agentRun, { record, host, mark, ending: ready.ending })
    await goOn(deps, agentRun, record, { host, mark, ...ready })
  } catch (error) {
    const isClean = await (host ? deps.processes.end(host) : deps.processes.endUnheard(record))
    deps.log.warn('run.not-taken-back', { run, epoch, isClean, error })
    lost(deps, agentRun, `${NOT_TAKEN_BACK}${String(error)}`)
  } finally {
    lines?.settle()
    release()
    deps.agentRuns.remove(agentRun)
    deps.takeover.gone(record.marker, record.process.pid)
  }
}

interface Silent {
  record: ProgramRecord
  host: HostProcess
  mark: KnownMark
  ending: Ending
}

/** What it would still have told is not heard: it has had its time to say it. */
async function endSilent(
  deps: Needs<typeof ended> & { processes: Pick<Processes, 'end'> },
  agentRun: AgentRun,
  { record, host, mark, ending }: Silent,
): Promise<void> {
  const { run, epoch } = record.offer
  const { countedMs } = timeOf(record, mark.isParked)
  const isClean = await deps.processes.end(host)
  deps.log.warn('run.silent', { run, epoch, how: ending.how, isClean })
  ended(deps, agentRun, { ending, hasBegun: true, computeMs: countedMs })
}

interface Found {
  host: HostProcess
  lines: Lines
  agentRun: AgentRun
  mark: KnownMark
}

interface Ready extends Heard {
  knownEvents: number
  bundleFolder: string
  secrets: RunSecrets | undefined
}

/** Everything without which it cannot go on. Its bundle is retained by whoever calls. */
async function makeReady(
  deps: Needs<typeof allAcked> & Pick<ExecuteNeeds, 'secrets' | 'bundles'> & { link: Pick<Link, 'send'> },
  { host, lines, agentRun, mark }: Found,
  signal: AbortSignal,
): Promise<Ready> {
  const { report, raw } = await heard(host)
  lines.settle()
  const { written } = await allAcked(deps, agentRun, signal)
  if (report.first > mark.frames) throw new Error('it has told more since then than it can tell again')
  void askForToken(deps, agentRun, signal)
  const bundle = await deps.bundles.hold(agentRun.offer.bundle, signal)
  bundle.release()
  const secrets = await deps.secrets.readAgain(agentRun, report.variables, signal)
  return { report, raw, knownEvents: written - mark.seq, bundleFolder: bundle.folder, secrets }
}

interface Rejoined extends Ready {
  host: TakenBack['host']
  mark: KnownMark
}

async function goOn(
  deps: Needs<typeof follow | typeof reportTo>,
  agentRun: AgentRun,
  record: ProgramRecord,
  { host, mark, report, raw, knownEvents, bundleFolder, secrets }: Rejoined,
): Promise<void> {
  const { offer } = agentRun
  const { countedMs, timeoutMs } = timeOf(record, mark.isParked)
  const save = () => deps.spool.flush()
  const start = { ...startOf(offer, bundleFolder, NO_JOURNAL, secrets), timeoutMs, replay: false, save }
  agentRun.restore(mark.journal)
  let committed = mark.journal
  const onJournal = (count: number) => agentRun.restore((committed += count))
  const known = { events: knownEvents, onJournal }
  const said = { heard: report.heard, handsOver: report.handsOver }
  const taken: TakenBack = { host, mark, known, ...said, countedMs, startedAt: startedAt(record.process) }
  const program = deps.processes.run(start, reportTo(deps, agentRun), taken)
  agentRun.attach(program)
  if (mark.isParked) deps.parking.parked(agentRun, mark.seq)
  deps.log('run.taken-back', { run: offer.run, epoch: offer.epoch, attempt: offer.attempt })
  const followed = follow(deps, agentRun, program, true)
  host.resume()
  // Not before it is noted how far it was heard: this will not be told again.
  host.repeat(raw)
  await followed
}

async function askForToken(
  { link }: { link: Pick<Link, 'send'> },
  agentRun: AgentRun,
  signal: AbortSignal,
): Promise<void> {
  const { run, epoch } = agentRun.offer
  // Dropped as long as there is no connection.
  for (; agentRun.tokenAt === OLD && !signal.aborted; await pause(ASK_MS, signal))
    link.send({ t: 'renew', runs: [[run, epoch]] })
}

/** What it told before is all known at the coordinator: what it tells now goes on from there. */
async function allAcked(
  { spool }: { spool: Pick<Spool, 'find'> },
  { offer: { run, epoch } }: AgentRun,
  signal: AbortSignal,
): Promise<Held> {
  for (;;) {
    const held = spool.find(run, epoch)
    if (!held) throw new Error('somebody else has the run')
    if (held.acked >= held.written) return held
    await delay(LOOK_MS, undefined, { signal })
  }
}
