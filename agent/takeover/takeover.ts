import type { Log } from '@windlass/shared/log.ts'
import { markOf, sinceBootMs, type ProcessMark } from '../os/process-id.ts'
import type { AgentRun } from '../run/agent-run.ts'
import type { Processes } from '../run/hosts/processes.ts'
import type { RunningProgram, Whereabouts } from '../run/program/program.ts'
import type { Spool } from '../run/spool/spool.ts'
import type { Lease, ProgramRecord, Records } from './records.ts'

/** Keeps what the next agent needs in order to take programs back, should this one be killed. */
export interface Takeover {
  /** From now on, until the program has ended. Short ones are not worth it; one that was taken back is kept at once. */
  watch(agentRun: AgentRun, program: RunningProgram, wasTaken: boolean): void
  /** One that was found is not there any more. */
  gone(marker: string, pid: number): void
  /** The coordinator has extended the leases. */
  leaseFrom(lease: Lease): void
}

/** Also how often is looked whether something has changed. */
const WORTH_MS = 1_000

interface TakeoverNeeds {
  records: Records
  processes: Pick<Processes, 'keep' | 'leaseUntil'>
  spool: Pick<Spool, 'mark' | 'held'>
  log: Log
  /** What the agent before this one had; it holds until the first heartbeat of this one is answered. */
  lease: Lease | undefined
  /** Kept by the agent before this one. They go on to be, also as long as nothing was heard of them. */
  found: readonly Pick<ProgramRecord, 'marker'>[]
}

export function createTakeover(deps: TakeoverNeeds): Takeover {
  return new RecordedPrograms(deps)
}

class RecordedPrograms implements Takeover {
  readonly #deps: TakeoverNeeds
  #lease: Lease | undefined
  /** Markers of the programs that are kept for the next agent. */
  readonly #recorded: Set<string>
  #hasFailed = false

  constructor(deps: TakeoverNeeds) {
    this.#deps = deps
    this.#lease = deps.lease
    this.#recorded = new Set(deps.found.map(({ marker }) => marker))
  }

  watch(agentRun: AgentRun, program: RunningProgram, wasTaken: boolean): void {
    let last: Whereabouts | undefined
    let isFollowed = false
    const follow = () => {
      const { run, epoch } = agentRun.offer
      if (!isFollowed) program.follow((mark) => this.#deps.spool.mark(run, epoch, mark))
      isFollowed = true
    }
    const drop = () => {
      if (last) this.gone(last.marker, last.pid)
      last = undefined
    }
    const look = () => {
      const now = program.whereabouts()
      const mark = now && markOf(now.pid)
      if (!now || !mark) return drop()
      // A wait may begin and end between two looks. What it had computed before was told with it.
      if (last && last.turns === now.turns && (last.countedMs === null) === (now.countedMs === null)) return
      follow()
      if (this.#keep(agentRun, { now, mark, isFirst: last === undefined })) last = now
    }
    const timer = setInterval(look, WORTH_MS).unref()
    // One that is asked to stop is kept no further; unless it hears of that, it goes on at the next agent all the same.
    if (wasTaken) follow()
    if (wasTaken) look()
    void program.done.finally(() => {
      clearInterval(timer)
      drop()
    })
  }

  leaseFrom(next: Lease): void {
    this.#lease = next
    // What stands in the file ends earlier: the next agent takes less for granted, never more.
    if (this.#recorded.size > 0) this.#attempt(() => this.#tellLease())
    // One that is stopped while the coordinator is away knows for how long it is worth to wait with their ends.
    else if (this.#deps.spool.held().length > 0) this.#attempt(() => this.#deps.records.leaseFrom(next))
  }

  /** Answers whether it is kept. */
  #keep(
    agentRun: AgentRun,
    { now, mark, isFirst }: { now: Whereabouts; mark: ProcessMark; isFirst: boolean },
  ): boolean {
    if (!this.#attempt(() => this.#write(agentRun, now, mark))) return false
    const { run, epoch } = agentRun.offer
    if (isFirst) this.#deps.log.debug('run.kept', { run, epoch, pid: now.pid })
    this.#recorded.add(now.marker)
    return true
  }

  #write({ offer, secretBytes }: AgentRun, at: Whereabouts, mark: ProcessMark): void {
    const { pid: _, turns: __, countedMs, ...rest } = at
    const computesFromMs = countedMs === null ? null : sinceBootMs() - countedMs
    if (this.#recorded.size === 0) this.#tellLease()
    // Its process has been told these, and nobody needs them any more.
    const cleared = { inputText: '', journal: { ...offer.journal, text: null } }
    const facts = { process: mark, offer: { ...offer, ...cleared }, secretBytes, computesFromMs }
    this.#deps.records.keep({ ...rest, ...facts })
    this.#deps.processes.keep(at.pid, true)
  }

  gone(marker: string, pid: number): void {
    this.#attempt(() => this.#deps.records.forget(marker))
    this.#deps.processes.keep(pid, false)
    this.#recorded.delete(marker)
  }

  #tellLease(): void {
    if (!this.#lease) return
    this.#deps.records.leaseFrom(this.#lease)
    this.#deps.processes.leaseUntil(this.#lease.fromMs + this.#lease.fenceMs)
  }

  /**
   * A full disk keeps nothing for the next agent, and must not end this one. What is in no file is not left alive either.
   */
  #attempt(write: () => void): boolean {
    try {
      write()
      this.#hasFailed = false
      return true
    } catch (error) {
      if (!this.#hasFailed) this.#deps.log.warn('takeover.unwritten', { error })
      this.#hasFailed = true
      return false
    }
  }
}
