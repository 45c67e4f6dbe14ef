import type { Log } from '@windlass/shared/log.ts'
import { openDatabase, type Sql } from './client.ts'

/** With others at work the first look may find two servers by chance. */
const LOOKS = 5

/**
 * Throws where a pooler lends its servers for a transaction only. Statements are prepared for a connection, and locks
 * are held by it: there a statement gets the columns of another, of another org's too, or waits for good. Two
 * connections that say nothing are lent the same server one after the other, or one of them ever other ones.
 */
export async function refuseLentServers(url: string, log: Log): Promise<void> {
  const [one, other] = [0, 1].map(() => openDatabase({ url, max: 1, log })) as [Opened, Opened]
  try {
    let ours = await serverOf(one.db)
    let changes = 0
    for (let look = 0; look < LOOKS; look++) {
      const theirs = await serverOf(other.db)
      const again = await serverOf(one.db)
      if (again !== ours) changes++
      // One may be a connection that was lost and opened anew.
      if (theirs === ours || changes > 1) throw new Error(LENT)
      ours = again
    }
  } finally {
    await Promise.all([one.close(), other.close()])
  }
}

type Opened = ReturnType<typeof openDatabase>

/** Nothing is prepared for it. */
async function serverOf(connection: Sql): Promise<number> {
  const [row] = await connection<[{ pid: number }]>`select pg_backend_pid() as pid`.simple()
  return row.pid
}

const LENT =
  'The pooler that WINDLASS_DATABASE_URL leads to lends its servers for a transaction only. Windlass needs a server ' +
  'for as long as a connection lasts: set `pool_mode = session` (PgBouncer), or name PostgreSQL itself.'
