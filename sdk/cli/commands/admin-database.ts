import { readFileSync, realpathSync, statSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { Admin } from '@windlass/coordinator/admin/open.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { isLoopbackHost } from '@windlass/shared/loopback.ts'
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
  return withAddress({ url: given, example }, async (databaseUrl) => {
    const { openAdmin } = await import('@windlass/coordinator/admin/open.ts')
    const admin = await openAdmin({ databaseUrl, user: `${userName()}@${os.hostname()}` })
    try {
      return await work(admin)
    } finally {
      await admin.close()
    }
  })
}

/** The same for what opens the database itself. */
export async function withAddress<T>(
  { url: given, example }: { url: string | undefined; example: string },
  work: (databaseUrl: string) => Promise<T>,
): Promise<T> {
  const url = given ?? (process.env['WINDLASS_DATABASE_URL'] || undefined) ?? localDatabase()
  // The database's driver is loaded by the commands that need it.
  const { CannotOpen } = await import('@windlass/coordinator/admin/open.ts')
  try {
    return await work(url)
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
  const { file, secretKeyFile, isNamed } = localFacts()
  if (secretKeyFile !== undefined && !isNamed) refuseKeysElsewhere(file, secretKeyFile)
  return secretKeyFile
}

interface LocalFacts {
  file: string
  databaseUrl: string | undefined
  secretKeyFile: string | undefined
  /** By WINDLASS_HOME; else it was merely found. */
  isNamed: boolean
}

/** What `npm start` left in its home: WINDLASS_HOME, or the nearest `.windlass` from here upwards. */
function localFacts(): LocalFacts {
  const home = process.env['WINDLASS_HOME']
  const homes = home ? [home] : upwards(process.cwd()).map((folder) => path.join(folder, '.windlass'))
  for (const file of homes.map((folder) => path.resolve(folder, FILE))) {
    const found = statSync(file, { throwIfNoEntry: false })
    if (!found) continue
    refuseForeign(file, found)
    const facts = { ...factsIn(file), isNamed: Boolean(home) }
    if (!facts.isNamed) refuseElsewhere(facts)
    return facts
  }
  throw new Failure('No database is named, and no local instance was found.', WAYS)
}

/**
 * An archive can bring along a file that is ours and readable by nobody else. What was found and not named may direct
 * us to a database of this machine only, and gets no password of ours.
 */
function refuseElsewhere({ file, databaseUrl }: Pick<LocalFacts, 'file' | 'databaseUrl'>): void {
  if (databaseUrl !== undefined && !isHere(databaseUrl))
    throw notTrusted(file, `directs to a database that may be on a stranger's machine`)
  // The database's driver reads what an address lacks from the environment.
  delete process.env['PGPASSWORD']
}

/** The file that is meant in the end: an archive can bring along a link as well. */
function refuseKeysElsewhere(file: string, secretKeyFile: string): void {
  if (path.dirname(realPath(secretKeyFile)) === realPath(path.dirname(file))) return
  throw notTrusted(file, 'names a file of keys in another folder')
}

function realPath(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return path.resolve(file)
  }
}

function notTrusted(file: string, what: string): Failure {
  return new Failure(
    `${file} was found here and ${what}, so it is not trusted.`,
    `WINDLASS_HOME=${path.dirname(file)}, if \`npm start\` made it; ` +
      'or name the database: --database-url, or WINDLASS_DATABASE_URL',
  )
}

/** Sockets are named by `host` in the query, which goes before what stands in front of the path. */
function isHere(databaseUrl: string): boolean {
  const url = URL.parse(databaseUrl)
  if (!url || url.hash !== '') return false
  const hosts = [url.hostname, ...url.searchParams.getAll('host').flatMap((host) => host.split(','))]
  return hosts.every((host) => isLoopbackHost(host) || host.startsWith('/'))
}

function factsIn(file: string): Omit<LocalFacts, 'isNamed'> {
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
