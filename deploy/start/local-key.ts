import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { userInfo } from 'node:os'
import { join } from 'node:path'
import { createKey } from '@windlass/coordinator/accounts/api-keys.ts'
import { ensureDefaults } from '@windlass/coordinator/accounts/bootstrap.ts'
import { createCallers } from '@windlass/coordinator/accounts/callers.ts'
import {
  createSession,
  LONGEST_SESSION_MS,
  revokeSession,
  sessionTimeLeft,
} from '@windlass/coordinator/accounts/sessions.ts'
import { type Db, openDatabase } from '@windlass/coordinator/db/client.ts'
import { migrate } from '@windlass/coordinator/db/migrate.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { createLog, type Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'

/** What the CLI finds in the home folder of a local instance. */
export interface LocalAccess extends LocalCredentials {
  url: string
  org: string
}

export interface LocalCredentials {
  apiKey: string
  /** For what a key may not do at any scope. */
  session: string
}

export const ORG = 'default'
const CLI_FILE = 'cli.json'
const ADMIN_FILE = 'admin.json'
const NAME = 'local'
const DAY_MS = 86_400_000
/** A session with less left than this is replaced: the instance may run for a while. */
const RENEW_BELOW_MS = 7 * DAY_MS

/** Key and session of an earlier start if the database still knows them, else new ones. */
export async function localCredentials(databaseUrl: string, home: string): Promise<LocalCredentials> {
  const log = createLog({ process: 'start' }, 'error')
  const database = openDatabase({ url: databaseUrl, max: 1, log })
  try {
    await migrate(database, { log })
    const author = { ...operator(), orgId: await ensureDefaults(database.db) }
    const saved = await readAccess(home)
    return {
      apiKey: await keyOf(database.db, author, { saved: saved?.apiKey, log }),
      session: await sessionOf(database.db, author, saved?.session),
    }
  } finally {
    await database.close()
  }
}

type LocalAuthor = ReturnType<typeof operator> & { orgId: Awaited<ReturnType<typeof ensureDefaults>> }

/** Whoever types `npm start`. */
function operator() {
  return {
    kind: 'system',
    id: 'npm start',
    name: `npm start by ${userName()}`,
    via: 'system',
    requestId: null,
  } as const
}

function userName(): string {
  try {
    return userInfo().username
  } catch {
    // A container may run us as a number that has no name.
    return String(process.getuid?.() ?? 'somebody')
  }
}

async function keyOf(
  db: Db,
  author: LocalAuthor,
  { saved, log }: { saved: string | undefined; log: Log },
): Promise<string> {
  if (saved !== undefined && (await isOurs())) return saved
  return (await createKey(db, author, { name: NAME, role: 'owner' })).key

  async function isOurs(): Promise<boolean> {
    try {
      return (await createCallers({ db, log }).verify(saved ?? '')).org === ORG
    } catch (error) {
      if (error instanceof Fault) return false
      throw error
    }
  }
}

async function sessionOf(db: Db, author: LocalAuthor, saved: string | undefined): Promise<string> {
  const leftMs = saved === undefined ? undefined : await sessionTimeLeft(db, saved, ORG)
  if (saved !== undefined && leftMs !== undefined && leftMs >= RENEW_BELOW_MS) return saved
  const { secret } = await createSession(db, author, { name: NAME, role: 'owner', lifeMs: LONGEST_SESSION_MS })
  if (saved !== undefined && leftMs !== undefined) await revokeSession(db, author, saved)
  return secret
}

export interface Keeping {
  databaseUrl: string
  home: string
  stop: AbortSignal
  everyMs?: number
  fail(sentence: string): void
}

/** Looks every day whether the session is to be renewed: an instance may run for months. Returns when `stop` fires. */
export async function keepCredentials(access: LocalAccess, keeping: Keeping): Promise<void> {
  const { databaseUrl, home, stop, everyMs = DAY_MS } = keeping
  for (;;) {
    await pause(everyMs, stop)
    if (stop.aborted) return
    try {
      await writeAccess(home, { ...access, ...(await localCredentials(databaseUrl, home)) })
    } catch (error) {
      // The next look is soon enough: the session has days left.
      keeping.fail(`The session of the local CLI could not be looked at: ${(error as Error).message}`)
    }
  }
}

async function readAccess(home: string): Promise<Partial<LocalAccess> | undefined> {
  try {
    return JSON.parse(await readFile(join(home, CLI_FILE), 'utf8')) as Partial<LocalAccess>
  } catch (error) {
    // Not there on the first start; cut off when the machine went down while it was written.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export function writeAccess(home: string, { url, org, apiKey, session }: LocalAccess): Promise<void> {
  return writePrivately(join(home, CLI_FILE), { url, org, apiKey, session })
}

/** What `windlass admin` needs in order to find the database of this instance, and the keys of its secrets. */
export function writeAdmin(home: string, facts: { databaseUrl: string; secretKeyFile: string | null }): Promise<void> {
  return writePrivately(join(home, ADMIN_FILE), { ...facts, home })
}

async function writePrivately(file: string, value: object): Promise<void> {
  await writeFile(`${file}.new`, `${JSON.stringify(value)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}

export async function makeHome(home: string): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 })
  await chmod(home, 0o700)
}
