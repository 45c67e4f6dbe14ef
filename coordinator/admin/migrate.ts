import { createLog } from '@windlass/shared/log.ts'
import { isConnectionLoss } from '../db/client.ts'
import { migrate } from '../db/migrate.ts'
import { CannotOpen, databaseAt, unreachable } from './open.ts'

/**
 * Brings the database up to this program without the start of a coordinator: what is to be said of a restored database
 * has to be said before one starts. Answers the names of the migrations that this call made.
 */
export async function migrateDatabase(databaseUrl: string): Promise<string[]> {
  const database = databaseAt(databaseUrl)
  try {
    const { applied } = await migrate(database, { log: createLog({ process: 'admin' }, 'warn') })
    return applied
  } catch (error) {
    if (isConnectionLoss(error) || !(error instanceof Error)) throw unreachable(error)
    throw new CannotOpen(error.message, 'mend what is said, then call it again; --database-url names another database')
  } finally {
    await database.close()
  }
}
