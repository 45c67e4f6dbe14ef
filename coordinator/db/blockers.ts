import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from './client.ts'

/** A session that another one waits for. What belongs to another user the server does not tell. */
export interface Blocker {
  pid: number
  /** What it calls itself: `pg_dump`, `psql`. */
  program: string | null
  state: string | null
  /** When its transaction began. */
  since: Date | null
}

const MOST = 3

/**
 * Whom this session waits for, as it is so long from now: one that has given up waits for nobody any more. Asked over
 * another connection. None when `signal` comes first, or nothing can be learnt.
 */
export async function blockersOf(
  sql: Sql,
  pid: number,
  { afterMs, signal }: { afterMs: number; signal: AbortSignal },
): Promise<Blocker[]> {
  try {
    await delay(afterMs, undefined, { signal })
    return await sql<Blocker[]>`
      select pid, nullif(application_name, '') as program, state, xact_start as since
      from pg_stat_activity
      where pid = any(pg_blocking_pids(${pid}))
      order by xact_start
      limit ${MOST}`
  } catch {
    return []
  }
}

/** `pg_dump (pid 4711, since 2026-11-28 01:12:03 UTC)` */
export function described(blockers: readonly Blocker[]): string {
  if (blockers.length === 0) return 'a session that holds a table which it changes (see pg_locks)'
  return blockers
    .map(({ pid, program, since }) => {
      const at = since === null ? '' : `, since ${since.toISOString().replace('T', ' ').slice(0, 19)} UTC`
      return `${program ?? 'a session'} (pid ${pid}${at})`
    })
    .join(', ')
}
