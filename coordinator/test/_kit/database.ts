/** A fresh, migrated database for a test file: real PostgreSQL, a template made once per state of the migrations, a clone per file. */
import { spawn } from 'node:child_process'
import { createHash, randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@windlass/shared/log.ts'
import { openDatabase } from '../../db/client.ts'
import type { Database, Db } from '../../db/client.ts'
import { startEmbedded } from '../../db/embedded.ts'
import { migrate } from '../../db/migrate.ts'
import { readMigrations } from '../../db/migration-files.ts'
import { makePartitionsAhead } from '../../db/partitions.ts'

export interface TestServer {
  url: string
  stop(): Promise<void>
}

export interface TestDatabaseOptions {
  /** Of migrations; the product's own by default. */
  folder?: string
  max?: number
}

/** Of the invariants, so that a template of before is not taken. */
const INVARIANTS = 'journal_places counted_slots'
const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')
const log = createLog({ part: 'test' }, 'error')

// Tests lose nothing with the power: what is written may stay in memory.
const HASTY = { fsync: 'off', full_page_writes: 'off', synchronous_commit: 'off', max_connections: '200' }

/** The server is that of the run (WINDLASS_TEST_DATABASE_URL, set by the runner), else one that this process starts and stops. */
export async function testDatabase({ folder = MIGRATIONS, max }: TestDatabaseOptions = {}): Promise<Database> {
  const server = await borrowServer()
  // One connection, so that it can hold a lock over several statements.
  const admin = openDatabase({ url: server.url, max: 1, log })
  const name = `windlass_test_${process.pid}_${randomBytes(5).toString('hex')}`
  try {
    const template = await ensureTemplate(admin, folder)
    await admin.db`create database ${admin.db(name)} template ${admin.db(template)} strategy file_copy`
  } catch (error) {
    await admin.close()
    await server.stop()
    throw error
  }
  const database = openDatabase({ url: databaseUrl(server.url, name), max, log })
  const drop = async () => {
    await database.close()
    // Forced: what a test left connected is cut off here.
    await admin.db`drop database if exists ${admin.db(name)} with (force)`
    await admin.close()
    await server.stop()
  }
  let closing: Promise<void> | undefined
  return { url: database.url, db: database.db, close: () => (closing ??= drop()) }
}

/** A server for a whole run. It ends with this process, however that ends. */
export async function startTestServer(): Promise<TestServer> {
  const home = await mkdtemp(join(tmpdir(), 'windlass-db-'))
  const server = await startEmbedded({ home, log, settings: HASTY })
  const callOff = cleanUpAfterUs(server.pid, home)
  const stop = async () => {
    await server.stop()
    await rm(home, { recursive: true, force: true })
    await callOff()
  }
  let stopping: Promise<void> | undefined
  return { url: server.url, stop: () => (stopping ??= stop()) }
}

let own: Promise<TestServer> | undefined
let borrowers = 0

/** Several databases of one file share the server of its process; the last to go switches it off. */
async function borrowServer(): Promise<TestServer> {
  const given = process.env.WINDLASS_TEST_DATABASE_URL
  if (given) return { url: given, stop: () => Promise.resolve() }
  borrowers++
  const lent = (own ??= startTestServer())
  const stop = async () => {
    borrowers--
    if (borrowers > 0 || own !== lent) return
    own = undefined
    await (await lent).stop()
  }
  return { url: (await lent).url, stop }
}

/** Answers the template's name. It counts as ready once it is marked as a template, which is the last thing done to it. */
async function ensureTemplate(admin: Database, folder: string): Promise<string> {
  const migrations = await readMigrations(folder)
  const state = createHash('sha256')
    .update(migrations.map((each) => each.file + each.checksum).join() + INVARIANTS)
    .digest('hex')
  const name = `windlass_template_${state.slice(0, 16)}`
  if (await isReady(admin.db, name)) return name

  const { db } = admin
  await db`set lock_timeout = '60s'`
  await db`set statement_timeout = '60s'`
  // Two test files may come here at once. A lock on the first free number of ours; it is per database, all use the same one.
  await db`select pg_advisory_lock(4711)`
  try {
    if (await isReady(db, name)) return name
    await db`drop database if exists ${db(name)} with (force)`
    await db`create database ${db(name)}`
    await migrate({ url: databaseUrl(admin.url, name) }, { folder, log })
    if (folder === MIGRATIONS) await finish(databaseUrl(admin.url, name))
    // A template that somebody is connected to cannot be cloned.
    await db`alter database ${db(name)} with is_template true allow_connections false`
    return name
  } finally {
    await db`select pg_advisory_unlock(4711)`
  }
}

/** The product's own database, as a coordinator that has started leaves it, and with more checks. */
async function finish(url: string): Promise<void> {
  const template = openDatabase({ url, max: 1, log })
  try {
    await makePartitionsAhead(template.db, log)
    await addInvariants(template.db)
  } finally {
    await template.close()
  }
}

/**
 * What the product relies on and does not pay for, checked at every write of every test. Two calls of an attempt have
 * two places: a replay that found one place twice would be blocked. The slots of a group are as many as are noted.
 *
 * All of this is the tests' own. Production keeps no such index, which each write to a journal would pay for, and takes
 * what is refused here: a refusal by `journal_places` says that a place was given out twice, and is no error that
 * anybody gets there.
 */
async function addInvariants(db: Db): Promise<void> {
  await db`
    alter table journal
    add constraint journal_places unique (run_id, attempt, position) deferrable initially deferred`
  await db`
    create function counted_slots() returns trigger language plpgsql as $$
    declare
      key text := case when tg_op = 'DELETE' then old.group_key else new.group_key end;
      seen text := coalesce(current_setting('windlass.counted', true), '');
      noted int;
      there int;
    begin
      -- At the commit nothing changes any more, so each group is counted once, however many rows of it have changed.
      if position('<' || key || '>' in seen) > 0 then
        return null;
      end if;
      perform set_config('windlass.counted', seen || '<' || key || '>', true);
      -- In one statement: another coordinator may commit in between.
      select (select taken from concurrency_groups where group_key = key),
             (select count(*) from concurrency_slots where group_key = key)
      into noted, there;
      if noted is distinct from nullif(there, 0) then
        raise exception '% slots of % are noted, and there are %', noted, key, there using errcode = 'check_violation';
      end if;
      return null;
    end $$`
  for (const table of ['concurrency_slots', 'concurrency_groups'])
    await db`
      create constraint trigger counted_slots after insert or update or delete on ${db(table)}
      deferrable initially deferred for each row execute function counted_slots()`
}

/** The database as operators have it, for those who look at its plans. */
export async function dropInvariants(db: Db): Promise<void> {
  await db`alter table journal drop constraint journal_places`
  await db`drop function counted_slots() cascade`
}

async function isReady(db: Db, name: string): Promise<boolean> {
  const rows = await db`select 1 from pg_database where datname = ${name} and datistemplate`
  return rows.length === 1
}

function databaseUrl(serverUrl: string, name: string): string {
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  return url.href
}

/**
 * A shell that reads from us and gets the end of the file when this process is gone, by kill -9 too: then it ends the server
 * and removes its folder. Answers the act that calls it off.
 */
function cleanUpAfterUs(pid: number, home: string): () => Promise<void> {
  const wait = 'n=0; while kill -0 "$1" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done'
  const script = `cat >/dev/null; kill -INT "$1"; ${wait}; rm -rf "$2"`
  // In a group of its own, or Ctrl-C would end it along with us.
  const shell = spawn('sh', ['-c', script, 'sh', String(pid), home], {
    detached: true,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const ended = new Promise<void>((settle) => shell.once('exit', () => settle()))
  shell.unref()
  if ('unref' in shell.stdin && typeof shell.stdin.unref === 'function') shell.stdin.unref()
  return async () => {
    shell.ref()
    if (shell.pid !== undefined && shell.exitCode === null) process.kill(-shell.pid, 'SIGKILL')
    await ended
    shell.stdin.destroy()
  }
}
