/** Homes for embedded servers of a test file, and a table in them to see that data stays. */
import { rmSync } from 'node:fs'
import { chmod, mkdir, mkdtemp } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { openDatabase } from '../../db/client.ts'
import type { Db } from '../../db/client.ts'
import { startEmbedded } from '../../db/embedded.ts'
import type { EmbeddedPostgres } from '../../db/embedded.ts'

export const log = createLog({ part: 'test' }, 'error')
const root = await mkdtemp(join(tmpdir(), 'windlass-embedded-'))
await chmod(root, 0o755)
// Several files of tests share a process: a hook would run with the end of the first of them.
process.once('exit', () => rmSync(root, { recursive: true, force: true }))

let homes = 0

/** A home that does not exist yet, in a folder with the given mode. */
export async function aHome(mode = 0o755): Promise<string> {
  const parent = join(root, String(++homes))
  await mkdir(parent)
  await chmod(parent, mode)
  return join(parent, '.windlass')
}

export async function start(t: TestContext, home: string): Promise<EmbeddedPostgres> {
  const server = await startEmbedded({ home, log })
  t.after(() => server.stop())
  return server
}

export async function using<T>(url: string, work: (db: Db) => Promise<T>): Promise<T> {
  const database = openDatabase({ url, max: 2, log })
  try {
    return await work(database.db)
  } finally {
    await database.close()
  }
}

export async function keep(url: string, note: string) {
  await using(url, (db) =>
    db`create table if not exists notes (note text)`.then(() => db`insert into notes ${db({ note })}`),
  )
}

export async function notesIn(url: string): Promise<string[]> {
  const rows = await using(url, (db) => db<{ note: string }[]>`select note from notes`)
  return rows.map((row) => row.note)
}
