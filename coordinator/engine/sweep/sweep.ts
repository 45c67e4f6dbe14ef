import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Metrics } from '../../metrics/metrics.ts'
import type { Config } from '../../config.ts'
import * as find from '../store/orphans.ts'
import { followMark } from './mark.ts'
import { recountGroups } from './recount.ts'
import { repair, type RepairDeps } from './repair.ts'

/** Runs in one statement: some ten milliseconds of it. */
const PAGE = 2000
/** Runs locked and repaired in one transaction. */
const REPAIRED_TOGETHER = 50

type SweepDeps = RepairDeps & { log: Log; metrics: Metrics }

/**
 * Every unfinished run has exactly one owner, which will continue it. This looks whether that is so, repairs what is
 * not, and counts it: whatever it finds is a bug of ours. All moves are made in one transaction each, and each look is
 * one statement, so that a run on its way from one owner to the next is never seen without any.
 */
export async function sweepRuns(deps: SweepDeps & { config: Config }, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await pause(deps.config.sweepRunsMs, signal)
    if (signal.aborted) return
    try {
      await sweepRunsOnce(deps)
      probe('sweep.done', { of: 'runs' })
    } catch (error) {
      deps.log.warn('runs.sweep.failed', { error })
    }
  }
}

/** Answers how many orphans it has found. */
export async function sweepRunsOnce(deps: SweepDeps, pageSize = PAGE): Promise<number> {
  const walk = (look: Look) => walkThrough(deps, pageSize, look)
  // Repairs are transactions of their own; this one only holds the lock, and looks.
  return deps.db.begin(async (tx) => {
    if (!(await find.tryLead(tx))) return 0
    await followMark(deps.db)
    let found = await walk((scope) => find.unowned(tx, scope))
    for (const kind of find.STRAY_KINDS) found += await walk((scope) => find.strays(tx, kind, scope))
    found += await recountGroups(deps, tx)
    return found + (await walk((scope) => find.forgottenWaiters(tx, scope)))
  })
}

type Look = (scope: find.Scope) => Promise<find.Page>

async function walkThrough(deps: SweepDeps, limit: number, look: Look): Promise<number> {
  let found = 0
  for (let after: string | null = ''; after !== null;) {
    const page: find.Page = await look({ after, limit })
    found += await repairAll(deps, page.findings)
    after = page.last
  }
  return found
}

async function repairAll(deps: SweepDeps, findings: find.Finding[]): Promise<number> {
  const ids = [...new Set(findings.map((one) => one.runId))]
  let found = 0
  for (let i = 0; i < ids.length; i += REPAIRED_TOGETHER)
    found += await repairSome(deps, ids.slice(i, i + REPAIRED_TOGETHER))
  return found
}

/** One run that cannot be repaired must not keep its neighbours from it. */
async function repairSome(deps: SweepDeps, ids: string[]): Promise<number> {
  try {
    const repaired = await repair(deps, ids)
    const found = repaired.filter((one) => note(deps, one))
    deps.metrics.repaired(found.length)
    return found.length
  } catch (error) {
    if (ids.length === 1) {
      deps.log.error('run.orphan.unrepaired', { runId: ids[0], error })
      return noteUnrepaired(deps, ids)
    }
    let found = 0
    for (const id of ids) found += await repairSome(deps, [id])
    return found
  }
}

async function noteUnrepaired(deps: SweepDeps, ids: string[]): Promise<number> {
  const findings = await deps.db.begin((tx) => find.orphansAmong(tx, ids))
  return findings.filter((one) => note(deps, one)).length
}

/** Answers whether it is one of ours. */
function note(deps: { log: Log; metrics: Metrics }, { kind, ...facts }: find.Finding): boolean {
  if (kind === 'waits_for_nothing') {
    deps.log.warn('run.lost', { ...facts, reason: 'it waited for nothing' })
    return false
  }
  deps.metrics.orphan(kind, 1)
  deps.log.error('run.orphan', { kind, ...facts })
  return true
}
