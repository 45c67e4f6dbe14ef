/** What years of use leave in the tables, as copies of rows that are there. */
import type { Db } from '../../db/client.ts'
import type { Fragment } from '../../db/newest.ts'

/** The `i`th id beside that of the row `t`. */
const idOf = (db: Db, column: Fragment = db`t.id`) => db`left(${column}, -6) || lpad(i::text, 6, '0')`

/** So many copies of a row of the org, each with other keys. A table that has no row yet is told. */
export async function fill(db: Db, orgId: string): Promise<void> {
  const own = db`org_id = ${orgId}`
  const ofRun = db`run_id in (select id from runs where ${own})`
  const id = idOf(db)
  const name = db`'copy-' || i`
  const hash = db`'\\x' || encode(sha256(i::text::bytea), 'hex')`
  const run = idOf(db, db`t.run_id`)
  const copies: [table: string, count: number, where: Fragment, keys: Fragment][] = [
    ['inputs', 2000, db`${own} and status = 'open'`, db`'id', ${id}, 'run_id', ${run}`],
    ['audit_log', 2000, own, db`'id', ${id}`],
    ['workflows', 500, own, db`'id', ${id}, 'slug', ${name}`],
    ['workflow_versions', 500, own, db`'id', ${id}, 'workflow_id', ${idOf(db, db`t.workflow_id`)}`],
    ['workflow_versions', 500, own, db`'id', overlay(${id} placing '1' from 6 for 1), 'version', i + 1000`],
    ['environments', 150, own, db`'id', ${id}, 'name', ${name}`],
    ['variables', 150, own, db`'name', ${name}`],
    ['runner_pools', 150, own, db`'id', ${id}, 'name', ${name}`],
    ['runners', 500, own, db`'id', ${id}`],
    ['api_keys', 500, own, db`'id', ${id}, 'hash', ${hash}`],
    ['operator_sessions', 500, own, db`'id', ${id}, 'hash', ${hash}`],
    ['idempotency_keys', 2000, own, db`'key', ${name}`],
    [
      'runner_intake',
      500,
      db`runner_id in (select id from runners where ${own})`,
      db`'runner_id', ${idOf(db, db`t.runner_id`)}`,
    ],
    [
      'registration_tokens',
      500,
      db`pool_id in (select id from runner_pools where ${own})`,
      db`'id', ${id}, 'hash', ${hash}`,
    ],
    ['run_events', 2000, ofRun, db`'run_id', ${run}, 'cursor', i + 1`],
    ['journal', 2000, ofRun, db`'run_id', ${run}`],
    ['journal', 2000, db`${ofRun} and state = 'open'`, db`'run_id', ${run}, 'n', 1000`],
    ['timers', 2000, ofRun, db`'run_id', ${run}, 'due_at', now() + i * interval '1 hour'`],
    ['run_queue', 2000, db`true`, db`'run_id', ${run}, 'pool_id', ${idOf(db, db`t.pool_id`)}`],
    ['placements', 2000, db`true`, db`'run_id', ${run}, 'runner_id', ${idOf(db, db`t.runner_id`)}`],
    ['run_losses', 2000, ofRun, db`'run_id', ${run}`],
  ]
  for (const [table, count, where, keys] of copies) {
    const columns = await columnsOf(db, table)
    await db`
      insert into ${db(table)} (${db(columns)})
      select ${db(columns)}
      from (
        select (jsonb_populate_record(null::${db(table)}, to_jsonb(t) || jsonb_build_object(${keys}))).*
        from (select * from ${db(table)} where ${where} order by 1 limit 1) t
        cross join generate_series(1, ${count}) as i
      ) filled
      on conflict do nothing`
  }
}

/** Those that take a value: PostgreSQL computes the others itself. */
async function columnsOf(db: Db, table: string): Promise<string[]> {
  const rows = await db<{ name: string }[]>`
    select column_name as name
    from information_schema.columns
    where table_schema = current_schema() and table_name = ${table} and is_generated = 'NEVER'
      and identity_generation is distinct from 'ALWAYS'`
  return rows.map(({ name }) => name)
}
