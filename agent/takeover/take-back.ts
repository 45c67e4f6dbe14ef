import { setTimeout as delay } from 'node:timers/promises'
import { NOT_TAKEN_BACK } from '@windlass/shared/model/lost-reasons.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { RejoinReport } from '@windlass/shared/wire/program.ts'
import { endCgroup } from '../isolation/cgroup.ts'
import { endUids } from '../isolation/uids.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import { endGroup } from '../os/end-processes.ts'
import { sinceBootMs } from '../os/process-id.ts'
import { ended, follow, lost, startOf } from '../run/execute.ts'
import type { HostProcess } from '../run/hosts/host-process.ts'
import { AgentRun } from '../run/agent-run.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { TakenBack } from '../run/program/program.ts'
import type { Processes } from '../run/hosts/processes.ts'
import { reportTo } from '../run/report.ts'
import type { FrameMark, Held } from '../run/spool/held.ts'
import type { Spool } from '../run/spool/spool.ts'
import { rejoined, timeOf } from './rejoined.ts'
import type { ProgramRecord, Lease, Records } from './records.ts'
import { type Lines, openRendezvous } from './rendezvous.ts'

export type KnownMark = FrameMark & { frames: number }

/** What the spool of the agent before this one has of a program that may go on; undefined when it cannot. */
export function markOfHeld(held: Held | undefined): KnownMark | undefined {
  const mark = held && !held.isEnded && !held.gap ? held.mark : undefined
  return mark && mark.frames !== null ? { ...mark, frames: mark.frames } : undefined
}

const LOOK_MS = 20

type TakeBackNeeds = Needs<typeof goOn | typeof lost | typeof allAcked> & {
  agentRuns: AgentRuns
  records: Pick<Records, 'rendezvous' | 'forget'>
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
  agentRun.isParked = mark.isParked
  deps.agentRuns.add(agentRun)
  let host: TakenBack['host'] | undefined
  let lines: Lines | undefined
  try {
    lines = await openRendezvous(deps.records.rendezvous(record.marker), record.uid)
    host = deps.processes.adopt(record, lines)
    const answer = await rejoined(host, agentRun, timeOf(record, mark.isParked))
    if ('ending' in answer) return await endSilent(deps, agentRun, { record, host, mark, ending: answer.ending })
    const { report } = answer
    lines.settle()
    const held = await allAcked(deps, agentRun)
    if (report.first > mark.frames) throw new Error('it has told more since then than it can tell again')
    await goOn(deps, agentRun, record, { host, mark, report, knownEvents: held.written - mark.seq })
  } catch (error) {
    const isClean = await (host ? deps.processes.end(host) : endAlone(record))
    deps.log.warn('run.not-taken-back', { run, epoch, isClean, error })
    lost(deps, agentRun, `${NOT_TAKEN_BACK}${String(error)}`)
  } finally {
    lines?.settle()
    deps.agentRuns.remove(agentRun)
    deps.records.forget(record.marker)
  }
}

/** There are no pipes to it: nobody hears it, and nobody would fence it. */
async function endAlone({ process: { pid }, cgroup, uid }: ProgramRecord): Promise<boolean> {
  const ended = await Promise.all([
    endGroup(pid),
    cgroup === undefined || endCgroup(cgroup),
    uid === undefined || endUids({ first: uid, last: uid }),
  ])
  return ended.every(Boolean)
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

interface Rejoined {
  host: TakenBack['host']
  mark: KnownMark
  report: RejoinReport
  knownEvents: number
}

async function goOn(
  deps: Needs<typeof follow | typeof reportTo>,
  agentRun: AgentRun,
  record: ProgramRecord,
  { host, mark, report, knownEvents }: Rejoined,
): Promise<void> {
  const { offer } = agentRun
  const bundle = await deps.bundles.hold(offer.bundle, agentRun.fated)
  try {
    const secrets = await deps.secrets.readAgain(agentRun, report.variables)
    if (agentRun.fate) throw new Error('it is not wanted any more')
    const { countedMs, timeoutMs } = timeOf(record, mark.isParked)
    const start = { ...startOf(offer, bundle.folder, [], secrets), timeoutMs, replay: false }
    agentRun.restore(mark.journal)
    let committed = mark.journal
    const onJournal = (count: number) => agentRun.restore((committed += count))
    const known = { events: knownEvents, onJournal }
    const taken: TakenBack = { host, mark, known, heard: report.heard, countedMs }
    const program = deps.processes.run(start, reportTo(deps, agentRun), taken)
    agentRun.attach(program)
    if (mark.isParked) deps.parking.parked(agentRun, mark.seq)
    deps.log('run.taken-back', { run: offer.run, epoch: offer.epoch, attempt: offer.attempt })
    await follow(deps, agentRun, program, true)
  } finally {
    bundle.release()
  }
}

/** What it told before is all known at the coordinator: what it tells now goes on from there. */
async function allAcked({ spool }: { spool: Pick<Spool, 'find'> }, agentRun: AgentRun): Promise<Held> {
  const { run, epoch } = agentRun.offer
  for (;;) {
    const held = spool.find(run, epoch)
    if (!held) throw new Error('somebody else has the run')
    if (agentRun.fate) throw new Error('it is not wanted any more')
    if (held.acked >= held.written) return held
    await delay(LOOK_MS)
  }
}
