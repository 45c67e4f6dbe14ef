import { chmod, mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { callerVerifier, mintApiKey } from '@windlass/coordinator/accounts/api-keys.ts'
import { ensureDefaults } from '@windlass/coordinator/accounts/bootstrap.ts'
import { openDatabase } from '@windlass/coordinator/db/client.ts'
import { migrate } from '@windlass/coordinator/db/migrate.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { createLog } from '@windlass/shared/log.ts'

/** What the CLI finds in the home folder of a local instance. */
export interface LocalAccess {
  url: string
  org: string
  apiKey: string
}

export const ORG = 'default'
const FILE = 'cli.json'

/** The key of an earlier start if the database still knows it, else a new one. */
export async function localKey(databaseUrl: string, home: string): Promise<string> {
  const log = createLog({ process: 'start' }, 'error')
  const database = openDatabase({ url: databaseUrl, max: 1, log })
  try {
    await migrate(database, { log })
    const orgId = await ensureDefaults(database.db)
    const kept = await readAccess(home)
    if (kept && (await isKnown(kept.apiKey))) return kept.apiKey
    return (await mintApiKey(database.db, { orgId, name: 'local', role: 'owner' })).key
  } finally {
    await database.close()
  }

  async function isKnown(apiKey: string): Promise<boolean> {
    try {
      return (await callerVerifier({ db: database.db, log })(apiKey)).org === ORG
    } catch (error) {
      if (error instanceof Fault) return false
      throw error
    }
  }
}

async function readAccess(home: string): Promise<LocalAccess | undefined> {
  try {
    return JSON.parse(await readFile(join(home, FILE), 'utf8')) as LocalAccess
  } catch (error) {
    // Not there on the first start; cut off when the machine went down while it was written.
    if (error instanceof SyntaxError || (error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

export async function writeAccess(home: string, access: LocalAccess): Promise<void> {
  const file = join(home, FILE)
  await writeFile(`${file}.new`, `${JSON.stringify(access)}\n`, { mode: 0o600 })
  await rename(`${file}.new`, file)
}

export async function makeHome(home: string): Promise<void> {
  await mkdir(home, { recursive: true, mode: 0o700 })
  await chmod(home, 0o700)
}
