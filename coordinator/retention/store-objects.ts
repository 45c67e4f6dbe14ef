import type { Db, Tx } from '../db/client.ts'

/** What lies under these keys is going to be removed, if the transaction is committed. */
export async function add(tx: Tx, keys: readonly string[]): Promise<void> {
  if (keys.length === 0) return
  await tx`insert into object_removals (key) select unnest(${[...keys]}::text[]) on conflict (key) do nothing`
}

/** The next keys behind one. */
export async function next(db: Db, after: string, most: number): Promise<string[]> {
  const rows = await db<{ key: string }[]>`
    select key from object_removals where key > ${after} order by key limit ${most}`
  return rows.map(({ key }) => key)
}

export async function remove(db: Db, keys: readonly string[]): Promise<void> {
  if (keys.length > 0) await db`delete from object_removals where key = any(${[...keys]})`
}
