/**
 * What PostgreSQL does for each statement, as it happens: auto_explain tells it to the session that sent the statement.
 */
import { createLog, type Log } from '@windlass/shared/log.ts'
import type { Db } from '../../db/client.ts'

/** A step of a plan, with what it has read. Rows are those of one loop, on average. */
export interface PlanNode {
  'Node Type': string
  'Relation Name'?: string
  'Parent Relationship'?: string
  'Index Name'?: string
  'Index Cond'?: string
  Filter?: string
  'Join Filter'?: string
  'Conflict Resolution'?: string
  'CTE Name'?: string
  'Subplan Name'?: string
  'Join Type'?: string
  'Scan Direction'?: string
  Operation?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Rows Removed by Join Filter'?: number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: PlanNode[]
}

export interface Executed {
  text: string
  plan: PlanNode
}

export interface Explained {
  /** To be given to whoever opens connections. */
  log: Log
  /** All that was executed since this was called last. */
  take(): Executed[]
}

export function createExplained(): Explained {
  let executed: Executed[] = []
  const write = (line: string) => {
    const { level, notice } = JSON.parse(line) as { level: string; notice?: string }
    const found = notice === undefined ? undefined : readNotice(notice)
    if (found) executed.push(found)
    else if (level === 'error') process.stderr.write(line)
  }
  return {
    log: createLog({}, 'debug', { write }),
    take() {
      const taken = executed
      executed = []
      return taken
    },
  }
}

/** Sessions that are opened from now on explain themselves; those that are open go on as before. */
export async function explainSessions(db: Db): Promise<void> {
  const [{ name }] = await db<[{ name: string }]>`select current_database() as name`
  const database = db(name)
  await db`alter database ${database} set session_preload_libraries = 'auto_explain'`
  await db`alter database ${database} set auto_explain.log_min_duration = 0`
  await db`alter database ${database} set auto_explain.log_analyze = on`
  await db`alter database ${database} set auto_explain.log_buffers = on`
  // A look at the clock for each row would cost more than the rows.
  await db`alter database ${database} set auto_explain.log_timing = off`
  await db`alter database ${database} set auto_explain.log_format = json`
  await db`alter database ${database} set auto_explain.log_level = notice`
}

/** All steps of a plan, those that lead to a step before it. */
export function stepsOf(plan: PlanNode): PlanNode[] {
  return [...(plan.Plans ?? []).flatMap(stepsOf), plan]
}

function readNotice(notice: string): Executed | undefined {
  const json = notice.match(/^duration: .* plan:\n(\{.*)$/s)?.[1]
  if (json === undefined) return undefined
  const { 'Query Text': text, Plan: plan } = JSON.parse(json) as { 'Query Text': string; Plan: PlanNode }
  return { text, plan }
}
