import { join } from 'node:path'
import { createLog } from '@windlass/shared/log.ts'
import type { Operator } from '../accounts/operator.ts'
import { type Database, type Db, isConnectionLoss, openDatabase } from '../db/client.ts'
import { isOfPreview, MADE_BY_PREVIEW, readMigrations } from '../db/migration-files.ts'
import { recordedMigrations } from './store.ts'

/** What the commands of `windlass admin` work with: the database itself, and in whose name they change it. */
export interface Admin {
  db: Db
  operator: Operator
  close(): Promise<void>
}

/** Why there is no database to work on, and the way out. */
export class CannotOpen extends Error {
  readonly next: string
  /** As whose fault scripts are to take it. */
  readonly exit: 'usage' | 'failed' | 'unreachable'

  constructor(message: string, next: string, exit: CannotOpen['exit'] = 'failed') {
    super(message)
    this.name = 'CannotOpen'
    this.next = next
    this.exit = exit
  }
}

const MIGRATIONS = join(import.meta.dirname, '../db/migrations')

/** Opens the database, once it is certain that this program and the tables in it fit together. */
export async function openAdmin({ databaseUrl, user }: { databaseUrl: string; user: string }): Promise<Admin> {
  const database = databaseAt(databaseUrl)
  try {
    await refuseMisfit(database.db)
  } catch (error) {
    await database.close()
    throw error instanceof CannotOpen ? error : unreachable(error)
  }
  const operator: Operator = { kind: 'operator', id: user, name: user, via: 'admin', requestId: null }
  return { db: database.db, operator, close: () => database.close() }
}

/** Throws CannotOpen for what is no address. Nothing is asked yet. */
export function databaseAt(url: string): Database {
  if (/^postgres(ql)?:$/.test(URL.parse(url)?.protocol ?? ''))
    return openDatabase({ url, max: 2, log: createLog({ process: 'admin' }, 'error') })
  // Not repeated: there may be a password in it.
  throw new CannotOpen(
    'The address of the database is none: it must begin with `postgres://`.',
    '--database-url postgres://user:password@host:5432/database',
    'usage',
  )
}

async function refuseMisfit(db: Db): Promise<void> {
  const [ours, theirs] = await Promise.all([readMigrations(MIGRATIONS), recordedMigrations(db)])
  if (theirs.length === 0)
    throw new CannotOpen(
      'This database holds no Windlass yet.',
      '`windlass admin migrate`, or the start of a coordinator, makes its tables',
    )
  if (isOfPreview(theirs)) throw new CannotOpen(`${MADE_BY_PREVIEW}.`, 'name the database of this Windlass')
  const unknown = theirs[ours.length]
  if (unknown) {
    const label = `${String(unknown.number).padStart(4, '0')}-${unknown.name}`
    throw new CannotOpen(
      `The database is newer than this Windlass: it has the migration ${label}, and this program knows those up to ` +
        `${ours.at(-1)?.file.replace(/\.sql$/, '')}.`,
      'install the `windlass` that its coordinators are of: `windlass service health` asks one for its version',
    )
  }
  const isSame = theirs.every(({ checksum }, index) => checksum === ours[index]?.checksum)
  if (isSame && theirs.length === ours.length) return
  throw new CannotOpen(
    isSame
      ? `The database is not migrated to this Windlass: it has ${theirs.length} of ${ours.length} migrations.`
      : 'The database was migrated by another Windlass than this one.',
    isSame
      ? '`windlass admin migrate`, or the start of a coordinator of this version, brings it up to date'
      : 'use the Windlass that it was made with',
  )
}

const hasNoRight = (error: unknown) => error instanceof Error && 'code' in error && error.code === '42501'

export function unreachable(error: unknown): CannotOpen {
  const why =
    error instanceof Error ? error.message || ('code' in error ? String(error.code) : error.name) : String(error)
  return new CannotOpen(
    `The database cannot be used: ${why}.`,
    hasNoRight(error)
      ? 'name the role that owns its tables; what was restored for another role is restored anew, for that of the ' +
          'coordinators: `pg_restore --no-owner --role=<role>`'
      : '`npm start` starts that of the local instance; another is named by --database-url or WINDLASS_DATABASE_URL',
    isConnectionLoss(error) ? 'unreachable' : 'failed',
  )
}
