import type { RunId } from '@windlass/shared/ids.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { Db } from '../../db/client.ts'
import { runById } from '../../db/by-key.ts'

export interface PendingWake extends Completion {
  runId: RunId
  epoch: number
  /** Its place among all completions. */
  completion: number
}

/**
 * In one frame, and one result of 1 MiB on top: over a line of 50 KB/s that takes 26 s, for which the answer to a
 * heartbeat waits.
 */
const WAKE_BYTES = 256 * 1024
const WAKE_RESULTS = 2000
/** Of one run, however many others wait. */
const LEAST_OF_RUN = 200

/** By run, the last completion that its process was told. */
export type Cursors = ReadonlyMap<RunId, number>

export interface UndeliveredAsk {
  /** Nothing of these runs up to these completions. */
  cursors: Cursors
  /** Only what failed and is no child: refusals, and questions without an answer. */
  refusals?: boolean
}

/**
 * What the processes of this runner have not been given yet, in the order of completion. Of many results each run gets
 * a share, those that wait longest first: no more is read than that, and one entry of each run. Where the bytes do not
 * suffice the first of each run come before the second of any: one that takes no results keeps none from the others.
 */
export function undelivered(
  db: Db,
  runnerId: string,
  { cursors, refusals = false }: UndeliveredAsk,
): Promise<PendingWake[]> {
  const [runIds, lasts] = [[...cursors.keys()], [...cursors.values()].map(String)]
  const ours = db`
    completion is not null and delivered is null ${refusals ? db`and state = 'failed' and child_run_id is null` : db``}`
  return db<PendingWake[]>`
    with pending as (
      select found.*, sum(octet_length(result)) over (order by turn, completion) as bytes
      from (
        select w.run_id, w.epoch, j.n, j.state, j.result, j.completion,
               row_number() over (partition by w.run_id order by j.completion) as turn
        from (
          select p.run_id, p.epoch, r.attempt, coalesce(cursors.last, 0) as last, count(*) over ()::int as runs
          from placements p
          cross join lateral (${runById(db, db`p.run_id`)}) r
          left join unnest(${runIds}::text[], ${lasts}::bigint[]) as cursors (run_id, last)
            on cursors.run_id = p.run_id
          cross join lateral (
            select completion
            from journal
            where run_id = p.run_id and attempt = r.attempt and ${ours} and completion > coalesce(cursors.last, 0)
            order by completion
            limit 1
          ) oldest
          where p.runner_id = ${runnerId}
          order by oldest.completion
          offset 0
        ) w
        cross join lateral (
          select n, state, result, completion
          from journal
          where run_id = w.run_id and attempt = w.attempt and ${ours} and completion > w.last
          order by completion
          limit greatest(${WAKE_RESULTS}::int / w.runs, ${LEAST_OF_RUN}::int)
        ) j
        -- No more is read than this, as it is not sorted before.
        limit ${WAKE_RESULTS}::int
      ) found
    )
    select run_id, epoch, n, state, result, completion::float8 as completion
    from pending
    where bytes - octet_length(result) < ${WAKE_BYTES}::bigint
    order by completion`
}

/** Whether these are all that there was: neither the bytes of a frame nor anybody's share has cut them. */
export function isAll(found: readonly PendingWake[]): boolean {
  const byRun = Map.groupBy(found, ({ runId }) => runId)
  const share = Math.max(Math.floor(WAKE_RESULTS / byRun.size), LEAST_OF_RUN)
  const bytes = found.reduce((sum, { result }) => sum + Buffer.byteLength(result), 0)
  const isCut = bytes >= WAKE_BYTES || found.length >= WAKE_RESULTS
  return !isCut && [...byRun.values()].every((own) => own.length < share)
}
