import assert from 'node:assert/strict'
import type { Db, Tx } from '../../db/client.ts'

/** How many rows a list finds, and how many of the table it reads for them. Reading the table from end to end is a failure. */
export function rowsRead(
  db: Db,
  table: string,
  list: (db: Db) => Promise<readonly unknown[]>,
): Promise<{ found: number; read: number }> {
  return db.begin(async (tx) => {
    const since = await readBy(tx, table)
    // It asks for no more than a transaction is.
    const { length } = await list(tx as unknown as Db)
    const until = await readBy(tx, table)
    assert.equal(until.inOrder, since.inOrder, `the whole table ${table} was read`)
    return { found: length, read: until.byIndex - since.byIndex }
  })
}

/** Rows that this connection has read so far. */
async function readBy(tx: Tx, table: string): Promise<{ byIndex: number; inOrder: number }> {
  const [row] = await tx<[{ byIndex: number; inOrder: number }]>`
    select idx_tup_fetch::int as by_index, seq_tup_read::int as in_order
    from pg_stat_xact_user_tables
    where relname = ${table}`
  return row
}

/**
 * How many blocks of 8 KiB of the table's indexes a list touches. A condition that is no end of an index scan leaves no
 * trace in the rows.
 */
export function indexBlocksRead(db: Db, table: string, list: (db: Db) => Promise<unknown>): Promise<number> {
  return db.begin(async (tx) => {
    const since = await blocksBy(tx, table)
    await list(tx as unknown as Db)
    return (await blocksBy(tx, table)) - since
  })
}

async function blocksBy(tx: Tx, table: string): Promise<number> {
  const [row] = await tx<[{ blocks: number }]>`
    select sum(pg_stat_get_xact_blocks_fetched(indexrelid))::int as blocks
    from pg_index
    where indrelid = ${table}::regclass`
  return row.blocks
}
