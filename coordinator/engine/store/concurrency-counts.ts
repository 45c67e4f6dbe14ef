import type { Sql, Tx } from '../../db/client.ts'

export interface Miscounted {
  groupKey: string
  /** The number that was noted. */
  taken: number
  /** The number that there is. */
  slots: number
}

/**
 * Groups whose number is wrong. It changes in the transactions that change the slots, so one look at both needs no
 * lock. It reads all slots by their index: some 100 ms of half a million.
 */
export function miscounted(sql: Sql, most: number): Promise<Miscounted[]> {
  return sql<Miscounted[]>`
    select group_key, sum(taken)::int as taken, sum(slots)::int as slots
    from (
      select group_key, taken, 0 as slots from concurrency_groups
      union all
      select group_key, 0, count(*) from concurrency_slots group by group_key
    ) both_sides
    group by group_key
    having sum(taken) <> sum(slots)
    order by group_key
    limit ${most}`
}

/** Counts their slots anew. To be called under the locks of their workflows. */
export async function recount(tx: Tx, groups: readonly string[]): Promise<void> {
  await tx`delete from concurrency_groups where group_key = any(${[...groups]})`
  await tx`
    insert into concurrency_groups (group_key, taken)
    select group_key, count(*)
    from concurrency_slots
    where group_key = any(${[...groups]})
    group by group_key`
}
