import { readFileSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Admin } from '@windlass/coordinator/admin/open.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { refuseForeign, upwards } from '../local-instance.ts'

const WAYS =
  'run it where `npm start` runs, whose database is then found by itself; ' +
  'or name one: --database-url, or WINDLASS_DATABASE_URL'

/** Works on the database that was named, or on that of the local instance, and lets go of it. */
export async function withAdmin<T>(
  { url: given, example }: { url: string | undefined; example: string },
  work: (admin: Admin) => Promise<T>,
): Promise<T> {
  const url = given ?? (process.env['WINDLASS_DATABASE_URL'] || undefined) ?? localDatabase()
  // The database's driver is loaded by the commands that need it.
  const { CannotOpen, openAdmin } = await import('@windlass/coordinator/admin/open.ts')
  try {
    const admin = await openAdmin({ databaseUrl: url, user: `${userName()}@${os.hostname()}` })
    try {
      return await work(admin)
    } finally {
      await admin.close()
    }
  } catch (error) {
    if (error instanceof CannotOpen) throw new Failure(error.message, error.next, EXIT[error.exit], 'UNAVAILABLE')
    throw error instanceof Fault ? failureOf(error, example) : error
  }
}

function userName(): string {
  try {
    return os.userInfo().username
  } catch {
    // A container may run us as a number that has no name.
    return String(process.getuid?.() ?? 'somebody')
  }
}

const FILE = 'admin.json'

function localDatabase(): string {
  const { file, databaseUrl } = localFacts()
  if (databaseUrl !== undefined) return databaseUrl
  throw new Failure(`${file} names no database.`, 'run `npm start` again, which writes it anew')
}

/** The file of keys of the local instance, where the database is its own. */
export function localKeyFile(databaseUrl: string | undefined): string | undefined {
  if (databaseUrl !== undefined || process.env['WINDLASS_DATABASE_URL']) return undefined
  return localFacts().secretKeyFile
}

interface LocalFacts {
  file: string
  databaseUrl: string | undefined
  secretKeyFile: string | undefined
}

/** What `npm start` left in its home: WINDLASS_HOME, or the nearest `.windlass` from here upwards. */
function localFacts(): LocalFacts {
  const home = process.env['WINDLASS_HOME']
  const homes = home ? [home] : upwards(process.cwd()).map((folder) => path.join(folder, '.windlass'))
  for (const file of homes.map((folder) => path.resolve(folder, FILE))) {
    const found = statSync(file, { throwIfNoEntry: false })
    if (!found) continue
    refuseForeign(file, found)
    return factsIn(file)
  }
  throw new Failure('No database is named, and no local instance was found.', WAYS)
}

function factsIn(file: string): LocalFacts {
  try {
    const facts = JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>
    const text = (name: string) => (typeof facts[name] === 'string' ? facts[name] : undefined)
    return { file, databaseUrl: text('databaseUrl'), secretKeyFile: text('secretKeyFile') }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Failure(`${file} cannot be read: ${why}.`, WAYS)
  }
}

function failureOf({ code, message, detail }: Fault, example: string): Failure {
  if (detail?.['org'] !== undefined) return new Failure(message, 'windlass admin orgs list', EXIT.refused, code)
  if (code === 'NOT_FOUND')
    return new Failure(
      message,
      'windlass admin keys list --org <slug>, or windlass admin sessions list',
      EXIT.refused,
      code,
    )
  if (code === 'CONFLICT') return new Failure(message, 'windlass admin orgs list', EXIT.failed, code)
  return new Failure(message, example, EXIT.usage, code)
}
