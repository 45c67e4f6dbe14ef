/** The data folder: made once by initdb, aside and then renamed, so that a start that was cut short leaves no half of one. */
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chown, open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { ignoring, privateFolder } from './embedded-layout.ts'
import type { Layout } from './embedded-layout.ts'
import type { Program } from './embedded-program.ts'
import { initFailure } from './embedded-trouble.ts'

// A second on a good day; slow disks of small machines take half a minute.
const INIT_WITHIN_MS = 180_000
const LOG_LIMIT_BYTES = 10 * 1024 * 1024

/** Settles with the password of the user `windlass`. */
export async function ensureCluster(layout: Layout, program: Program, log: Log): Promise<string> {
  await trimLog(layout)
  const version = (await ignoring(['ENOENT'], readFile(join(layout.data, 'PG_VERSION'), 'utf8')))?.trim()
  if (version && version !== program.major) {
    throw new Error(
      `${layout.data} was written by PostgreSQL ${version}, this Windlass brings ${program.major}: start the Windlass it was written with, dump the database with pg_dump, and load it into a new WINDLASS_HOME.`,
    )
  }
  if (version) return readPassword(layout)
  if (await ignoring(['ENOENT'], stat(layout.data))) {
    throw new Error(
      `${layout.data} exists but holds no database (PG_VERSION is missing): restore it from a backup, or move it away to start with an empty one.`,
    )
  }
  return initialise(layout, program, log)
}

async function readPassword(layout: Layout): Promise<string> {
  const password = (await ignoring(['ENOENT'], readFile(layout.passwordFile, 'utf8')))?.trim()
  if (!password) {
    throw new Error(
      `${layout.passwordFile} is missing or empty, and without it the database cannot be opened: put it back from a backup.`,
    )
  }
  return password
}

async function initialise(layout: Layout, program: Program, log: Log): Promise<string> {
  const startedAt = performance.now()
  const draft = `${layout.data}.new`
  await rm(draft, { recursive: true, force: true })
  await privateFolder(draft, layout.account)
  const password = randomBytes(24).toString('base64url')
  await writeDurably(layout.passwordFile, `${password}\n`)
  await runInitdb(layout, program, draft, password)
  await rename(draft, layout.data)
  await syncFolder(layout.root)
  log('postgres.created', { folder: layout.data, tookMs: Math.round(performance.now() - startedAt) })
  return password
}

async function runInitdb(layout: Layout, program: Program, folder: string, password: string) {
  // initdb reads the password from a file that its own account may read; pipes of Node are sockets, which it cannot open.
  const passwordFile = join(layout.socket, '.initial-password')
  await rm(passwordFile, { force: true })
  await writeFile(passwordFile, password, { mode: 0o600, flag: 'wx' })
  if (layout.account) await chown(passwordFile, layout.account.uid, layout.account.gid)
  const seen = layout.seenByServer.data === layout.data ? { data: folder, socket: layout.socket } : layout.seenByServer
  const seenPasswordFile = join(seen.socket, '.initial-password')
  const choices = [
    '-U',
    'windlass',
    '-A',
    'scram-sha-256',
    '-E',
    'UTF8',
    '--locale-provider=builtin',
    '--locale=C.UTF-8',
    '--no-instructions',
  ]
  try {
    await finish(layout, program, ['-D', seen.data, `--pwfile=${seenPasswordFile}`, ...choices], folder)
  } finally {
    await rm(passwordFile, { force: true })
  }
}

function finish(layout: Layout, program: Program, args: string[], cwd: string): Promise<void> {
  return new Promise((settle, fail) => {
    const child = spawn(program.initdb, args, {
      ...layout.account,
      cwd,
      env: program.env,
      stdio: ['ignore', 'pipe', 'pipe'],
      timeout: INIT_WITHIN_MS,
    })
    let output = ''
    const note = (piece: string) => (output = (output + piece).slice(-2_000))
    child.stdout.setEncoding('utf8').on('data', note)
    child.stderr.setEncoding('utf8').on('data', note)
    child.once('error', (error) => fail(initFailure(output, layout, error)))
    child.once('close', (code, by) => {
      if (code === 0) settle()
      else
        fail(initFailure(output, layout, new Error(`initdb ended with ${by ? `signal ${by}` : `exit code ${code}`}.`)))
    })
  })
}

async function writeDurably(file: string, content: string) {
  await rm(file, { force: true })
  const handle = await open(file, 'wx', 0o600)
  await handle.writeFile(content)
  await handle.sync()
  await handle.close()
}

async function syncFolder(folder: string) {
  const handle = await open(folder, 'r')
  await handle.sync()
  await handle.close()
}

/** The server holds its log open while it runs, so its size is looked at between two runs. One older file is kept. */
async function trimLog(layout: Layout) {
  const found = await ignoring(['ENOENT'], stat(layout.logFile))
  if (found && found.size > LOG_LIMIT_BYTES) await rename(layout.logFile, `${layout.logFile}.1`)
}
