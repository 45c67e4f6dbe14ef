/**
 * A real PostgreSQL beside the coordinator: its binaries come from npm, its files live in `<home>/postgres`.
 *
 *   <home>/postgres/          0711, ours      password (0600), postgres.log, supervisor.json
 *   <home>/postgres/data/     0700, the server's account
 *   <home>/postgres/socket/   0700, the server's account (or a short folder in the temp folder, see embedded-layout.ts)
 *
 * PostgreSQL refuses to run as root, so under root it runs as another account; how that account gets into a home that is
 * closed to it is told in embedded-layout.ts. It is started detached: Ctrl-C must not reach it before the coordinator has
 * drained. A server whose coordinator was killed goes on alone and is adopted by the next start.
 * One home belongs to one machine (or container) at a time: process numbers mean nothing across that border.
 */
import { spawn } from 'node:child_process'
import { open, readFile } from 'node:fs/promises'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'
import { ensureCluster } from './embedded-cluster.ts'
import { findProgram } from './embedded-program.ts'
import type { Program } from './embedded-program.ts'
import { removeSocketFolder, prepareLayout } from './embedded-layout.ts'
import type { Layout } from './embedded-layout.ts'
import { clearStaleFiles, isPostmaster, readPidFile, signal, waitUntil } from './embedded-process.ts'
import type { Ending } from './embedded-process.ts'
import { serverArguments } from './embedded-settings.ts'
import { superviseAlone } from './embedded-supervisor.ts'
import { startFailure } from './embedded-trouble.ts'

export interface EmbeddedPostgres {
  /** Understood by openDatabase, openPgPool and psql: the folder of the unix socket rides in `?host=`. */
  url: string
  pid: number
  /** A server that an earlier process left running was taken over. */
  adopted: boolean
  /** Settles when the server is gone, asked for or not. Of an adopted server neither code nor signal is known. */
  exited: Promise<Ending>
  /** Fast shutdown: transactions under way are rolled back. Settles when the process is gone; may be called again. */
  stop(): Promise<void>
  /** Immediate shutdown, also during a fast one: the next start recovers. Settles when the process is gone. */
  end(): Promise<void>
}

export interface EmbeddedOptions {
  home: string
  log: Log
  /** Over the settings of embedded-settings.ts. Tests turn `fsync` off with it. */
  settings?: Record<string, string>
}

// Replaying 2 GB of WAL after a crash (max_wal_size) takes a slow disk a minute or two.
const READY_WITHIN_MS = 300_000
const STOP_WITHIN_MS = 60_000

export async function startEmbedded({ home, log, settings = {} }: EmbeddedOptions): Promise<EmbeddedPostgres> {
  const startedAt = performance.now()
  const layout = await prepareLayout(home)
  const release = await superviseAlone(layout)
  try {
    const program = await findProgram(layout)
    const password = await ensureCluster(layout, program, log)
    const orphan = await adopt(layout, log)
    const server = orphan ?? (await start(layout, program, settings, log))
    const tookMs = Math.round(performance.now() - startedAt)
    log(orphan ? 'postgres.adopted' : 'postgres.started', { pid: server.pid, tookMs })
    const exited = server.exited.then((ending) => release().then(() => ending))
    return {
      url: `postgres://windlass:${password}@localhost:5432/postgres?host=${encodeURIComponent(layout.socket)}`,
      pid: server.pid,
      adopted: orphan !== undefined,
      exited,
      stop: once(() => stop(layout, { ...server, exited }, shutDown, log)),
      end: once(() => stop(layout, { ...server, exited }, shutDownNow, log)),
    }
  } catch (error) {
    await release()
    throw error
  }
}

interface Server {
  pid: number
  exited: Promise<Ending>
}

/** The live server of an earlier start, when it is fit for use. A live one that is not is stopped, so that a new one may start. */
async function adopt(layout: Layout, log: Log): Promise<Server | undefined> {
  const found = await readPidFile(layout)
  if (!found || !(await isPostmaster(found.pid, layout))) return undefined

  // Starting, recovering or going down: all three end by themselves.
  const settled = async () => !(await isPostmaster(found.pid, layout)) || (await readPidFile(layout))?.isReady === true
  await waitUntil(settled, READY_WITHIN_MS, `PostgreSQL (process ${found.pid}) to become ready or to end`)
  if (!(await isPostmaster(found.pid, layout))) return undefined
  if (await answers(layout)) return { pid: found.pid, exited: watch(found.pid, layout) }

  log.warn('postgres.unreachable', { pid: found.pid, socket: layout.socket })
  await shutDown(layout, found.pid)
  return undefined
}

async function start(layout: Layout, program: Program, settings: Record<string, string>, log: Log): Promise<Server> {
  await clearStaleFiles(layout, log)
  const logFile = await open(layout.logFile, 'a', 0o600)
  const logStart = (await logFile.stat()).size
  const child = spawn(program.postgres, serverArguments(layout, settings), {
    ...layout.account,
    cwd: layout.data,
    env: program.env,
    detached: true,
    stdio: ['ignore', logFile.fd, logFile.fd],
  })
  let ending: Ending | undefined
  let failure: Error | undefined
  const exited = new Promise<Ending>((settle) => {
    child.once('error', (error) => settle(((failure = error), (ending = { code: null, signal: null }))))
    child.once('exit', (code, by) => settle((ending = { code, signal: by })))
  })
  await logFile.close()

  const isReady = async () => {
    const file = await readPidFile(layout)
    return ending !== undefined || (file?.pid === child.pid && file?.isReady === true)
  }
  await waitUntil(isReady, READY_WITHIN_MS, `PostgreSQL to become ready (see ${layout.logFile})`)
  if (ending || !child.pid) throw startFailure(await tail(layout.logFile, logStart), layout, ending, failure)
  return { pid: child.pid, exited }
}

async function stop(layout: Layout, { pid, exited }: Server, how: typeof shutDown, log: Log) {
  const startedAt = performance.now()
  await how(layout, pid)
  await exited
  await removeSocketFolder(layout)
  log('postgres.stopped', { pid, tookMs: Math.round(performance.now() - startedAt) })
}

/** Fast shutdown, and when that does not come to an end an immediate one: nothing is lost, the next start recovers. */
async function shutDown(layout: Layout, pid: number) {
  const isGone = async () => !(await isPostmaster(pid, layout))
  signal(pid, 'SIGINT')
  const deadline = performance.now() + STOP_WITHIN_MS
  while (!(await isGone()) && performance.now() < deadline) await delay(20)
  if (!(await isGone())) await shutDownNow(layout, pid)
}

async function shutDownNow(layout: Layout, pid: number) {
  signal(pid, 'SIGQUIT')
  await waitUntil(async () => !(await isPostmaster(pid, layout)), 15_000, `PostgreSQL (process ${pid}) to stop`)
}

/** An adopted server is not our child, so nobody tells us of its end. */
function watch(pid: number, layout: Layout): Promise<Ending> {
  return new Promise((settle) => {
    const look = async () => {
      if (await isPostmaster(pid, layout)) return
      clearInterval(timer)
      settle({ code: null, signal: null })
    }
    const timer = setInterval(() => void look(), 250)
  })
}

function answers(layout: Layout): Promise<boolean> {
  return new Promise((settle) => {
    const socket = createConnection(join(layout.socket, '.s.PGSQL.5432'))
    socket.setTimeout(5_000, () => socket.destroy())
    socket.once('connect', () => settle(true))
    socket.once('connect', () => socket.destroy())
    socket.once('error', () => settle(false))
    socket.once('close', () => settle(false))
  })
}

async function tail(file: string, from: number): Promise<string> {
  const text = await readFile(file)
  return text
    .subarray(Math.max(from, text.length - 2_000))
    .toString('utf8')
    .trim()
}

function once<T>(act: () => Promise<T>): () => Promise<T> {
  let result: Promise<T> | undefined
  return () => (result ??= act())
}
