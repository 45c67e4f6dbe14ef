import type { Log } from '@windlass/shared/log.ts'
import { markOf, sinceBootMs, type ProcessMark } from '../os/process-id.ts'
import type { Live } from '../run/live.ts'
import type { Processes } from '../run/hosts/processes.ts'
import type { RunningProgram, Whereabouts } from '../run/program/program.ts'
import type { Spool } from '../run/spool/spool.ts'
import type { Lease, Records } from './records.ts'

/** Keeps what the next agent needs in order to take programs back, should this one be killed. */
export interface Takeover {
  /** From now on, until the program has ended. Short ones are not worth it; one that was taken back is kept at once. */
  watch(live: Live, program: RunningProgram, wasTaken: boolean): void
  /** The coordinator has extended the leases. */
  leaseFrom(lease: Lease): void
}

/** Also how often is looked whether something has changed. */
const WORTH_MS = 1_000

export function createTakeover(deps: {
  records: Records
  processes: Pick<Processes, 'keep' | 'leaseUntil'>
  spool: Pick<Spool, 'mark'>
  log: Log
  /** What the agent before this one had; it holds until the first heartbeat of this one is answered. */
  lease: Lease
}): Takeover {
  const { records, processes, spool, log } = deps
  let { lease } = deps
  let kept = 0
  let hasFailed = false

  function watch(live: Live, program: RunningProgram, wasTaken: boolean): void {
    const { run, epoch } = live.offer
    let last: Whereabouts | undefined
    let isFollowed = false

    const look = () => {
      const now = program.whereabouts()
      const mark = now && markOf(now.pid)
      if (!now || !mark) return drop()
      if (last && (last.countedMs === null) === (now.countedMs === null)) return
      if (!isFollowed) program.follow((mark) => spool.mark(run, epoch, mark))
      isFollowed = true
      if (!attempt(() => keep(live, now, mark))) return
      if (!last) log.debug('run.kept', { run, epoch, pid: now.pid })
      kept += last ? 0 : 1
      last = now
    }
    const drop = () => {
      const { marker, pid } = last ?? {}
      if (marker === undefined || pid === undefined) return
      attempt(() => records.forget(marker))
      processes.keep(pid, false)
      kept -= 1
      last = undefined
    }
    const timer = setInterval(look, WORTH_MS).unref()
    if (wasTaken) look()
    void program.done.finally(() => {
      clearInterval(timer)
      drop()
    })
  }

  /** A full disk keeps nothing for the next agent, and must not end this one. What is in no file is not left alive either. */
  function attempt(write: () => void): boolean {
    try {
      write()
      hasFailed = false
      return true
    } catch (error) {
      if (!hasFailed) log.warn('takeover.unwritten', { error })
      hasFailed = true
      return false
    }
  }

  function keep({ offer }: Live, at: Whereabouts, mark: ProcessMark): void {
    const { pid: _, countedMs, ...rest } = at
    const computesFromMs = countedMs === null ? null : sinceBootMs() - countedMs
    if (kept === 0) tellLease()
    // Its process has been told these, and nobody needs them any more.
    const told = { inputText: '', journal: { ...offer.journal, text: null } }
    records.keep({ ...rest, process: mark, offer: { ...offer, ...told }, computesFromMs })
    processes.keep(at.pid, true)
  }

  function tellLease(): void {
    records.leaseFrom(lease)
    processes.leaseUntil(lease.fromMs + lease.fenceMs)
  }

  return {
    watch,
    leaseFrom(next) {
      lease = next
      // What stands in the file ends earlier: the next agent takes less for granted, never more.
      if (kept > 0) attempt(tellLease)
    },
  }
}
