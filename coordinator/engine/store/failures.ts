import type { Tx } from '../../db/client.ts'
import { unnest } from '../../db/unnest.ts'
import { type Changed, flat } from './journal.ts'

/**
 * These attempts threw, and it is known for which failures. Those that the program was given before the first of these,
 * and behind which it has bought anything, it had got past: the next attempt is given them again, as after a loss. They
 * are written as if it had taken them over already. Where nothing came of what was called behind one, that is tried
 * again: a fallback that never works would be all that is ever tried. Not inside of steps: these may have failed for
 * it.
 */
export function carryFailures(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = thrownOf(runs).filter(({ first }) => first !== null)
  return tx`
    with reason as materialized (
      select j.run_id, j.attempt, j.delivered, j.after
      from ${unnest(tx, 'm', rows, { runId: 'text', attempt: 'int', first: 'int' })}
      join journal j on j.run_id = m.run_id and j.n = m.first and j.attempt = m.attempt
      where j.state = 'failed' and j.delivered is not null
    ),
    -- Once for each attempt: thousands of failures may lie before the last thing that was bought.
    bought as materialized (
      select r.run_id, r.attempt, r.delivered, coalesce(max(l.position), 0) as last
      from reason r
      left join journal l
        on l.run_id = r.run_id and l.attempt = r.attempt and l.position <= r.after
        and l.state in ('done', 'open') and l.kind <> 'sleep'
      group by r.run_id, r.attempt, r.delivered
    )
    update journal j
    set delivered = null, after = 0, former = array[j.attempt, j.delivered, j.after]
    from bought b
    where j.run_id = b.run_id and j.attempt = b.attempt and j.state = 'failed' and j.parent = ''
      and j.delivered < b.delivered and (j.former is not null or j.after < b.last)`
}

const thrownOf = (runs: readonly Changed[]) => flat(runs, ({ journal: { thrown } }) => (thrown ? [thrown] : []))

/**
 * These attempts threw. Where the last that one was given is the failure of a step, it is likely to be why, unless that
 * is known to be another: the next attempt is to try it again, whatever was called after it, as if it had not been
 * given. That it was is told by `after`, which stays. Not so where an attempt before had got further: what it has
 * bought would be bought again; but what lies behind a failure that was taken back then is no way that it has got. Of
 * the attempt that was given it last before this one other calls count as well: only of that one, as nobody may ever
 * ask for them. And not with a child or a question: what was called after it has the same arguments, and would be
 * called twice.
 */
export function takeBackFailure(tx: Tx, runs: readonly Changed[]): PromiseLike<unknown> {
  const rows = thrownOf(runs)
  return tx`
    with given as materialized (
      select m.run_id, m.attempt, last.*
      from ${unnest(tx, 'm', rows, { runId: 'text', attempt: 'int', last: 'int' })}
      cross join lateral (
        select n, state, kind, parent, name, hash, occurrence, former
        from journal l
        where l.run_id = m.run_id and l.attempt = m.attempt and l.delivered is not null
        order by delivered desc
        limit 1
      ) last
      where m.last is null or m.last = last.n
    ),
    -- Once for each attempt: a journal may have thousands of equal steps.
    back as materialized (
      select f.run_id, f.attempt, min(f.after) as after
      from given j
      join journal f
        on f.run_id = j.run_id and f.parent = j.parent and f.kind = j.kind and f.name = j.name and f.hash = j.hash
      where f.state = 'failed' and f.delivered is null and f.former is null and f.after > 0
      group by f.run_id, f.attempt
    ),
    likely as materialized (
      select run_id, n
      from given j
      where state = 'failed' and kind = 'step'
        and not exists (
          select from journal l
          left join back on back.run_id = j.run_id and back.attempt = l.attempt
          where l.run_id = j.run_id and l.attempt < j.attempt and l.parent = j.parent and l.kind = j.kind
            and l.name = j.name and l.hash = j.hash and l.occurrence > j.occurrence and l.state <> 'failed'
            and (back.after is null or l.position <= back.after)
        )
        and not exists (
          select from journal l
          where l.run_id = j.run_id and l.attempt = j.former[1] and l.position > j.former[3] and l.parent = j.parent
            and l.state <> 'failed'
        )
    )
    update journal j
    set delivered = null, former = null
    from likely
    where j.run_id = likely.run_id and j.n = likely.n`
}
