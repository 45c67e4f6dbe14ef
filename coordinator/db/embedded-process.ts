/** What is known about the server's processes from outside: its pid file, the process table, signals. */
import { readFile, readdir, readlink, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'
import { ignoring } from './embedded-layout.ts'
import type { Layout } from './embedded-layout.ts'

/** How a process ended; both are null when nobody can know. */
export interface Ending {
  code: number | null
  signal: NodeJS.Signals | null
}

export interface PidFile {
  pid: number
  isReady: boolean
}

const GONE = ['ENOENT', 'ESRCH']

/** The first line of postmaster.pid is the process, the eighth its state. */
export async function readPidFile(layout: Layout): Promise<PidFile | undefined> {
  const text = await ignoring(GONE, readFile(join(layout.data, 'postmaster.pid'), 'utf8'))
  const lines = text?.split('\n') ?? []
  const pid = Number(lines[0])
  return Number.isSafeInteger(pid) && pid > 0 ? { pid, isReady: lines[7]?.trim() === 'ready' } : undefined
}

/** A zombie is not alive, and a recycled process number is somebody else: a server of ours works in its data folder. */
export async function isPostmaster(pid: number, layout: Layout): Promise<boolean> {
  if (!isAlive(pid)) return false
  if (process.platform !== 'linux') return true
  return (await processState(pid)) !== 'Z' && (await folderOf(pid)) === (await realpath(layout.data))
}

export function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    // EPERM: it lives, under another account.
    return error instanceof Error && 'code' in error && error.code === 'EPERM'
  }
}

/** A zombie has ended, and only its parent has not looked. Where there is no /proc nothing is known to be one. */
export async function isZombie(pid: number): Promise<boolean> {
  return (await statFields(pid))[0] === 'Z'
}

/** When a process started, in ticks since the machine's boot: tells it from a later one with the same number. */
export async function startTicks(pid: number): Promise<string> {
  return (await statFields(pid))[19] ?? ''
}

export function signal(pid: number, name: NodeJS.Signals) {
  try {
    process.kill(pid, name)
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ESRCH')) throw error
  }
}

/**
 * After kill -9 of the postmaster its files stay, and PostgreSQL trusts them when the number in them is taken again or is a
 * zombie that nobody reaps (pid 1 of a bare container). They may go once no process works in the data folder any more:
 * sessions of a killed postmaster notice within moments, unless busy with a long statement.
 */
export async function clearStaleFiles(layout: Layout, log: Log) {
  const stale = await readPidFile(layout)
  if (!stale) return
  if (process.platform === 'linux') await emptyFolder(layout, log)
  else if (isAlive(stale.pid)) return
  log('postgres.recovering', { stalePid: stale.pid })
  for (const file of ['.s.PGSQL.5432', '.s.PGSQL.5432.lock']) await rm(join(layout.socket, file), { force: true })
  await rm(join(layout.data, 'postmaster.pid'), { force: true })
}

async function emptyFolder(layout: Layout, log: Log) {
  const isEmpty = async () => (await processesIn(layout.data)).length === 0
  for (const [patienceMs, next] of [
    [1_000, 'SIGQUIT'],
    [5_000, 'SIGKILL'],
  ] as const) {
    const deadline = performance.now() + patienceMs
    while (!(await isEmpty()) && performance.now() < deadline) await delay(20)
    for (const pid of await processesIn(layout.data)) {
      log.warn('postgres.session.ended', { pid, by: next })
      signal(pid, next)
    }
  }
  await waitUntil(isEmpty, 5_000, 'the last processes of the killed PostgreSQL to end')
}

async function processesIn(folder: string): Promise<number[]> {
  const real = await realpath(folder)
  const found: number[] = []
  for (const entry of await readdir('/proc')) {
    const pid = Number(entry)
    if (Number.isSafeInteger(pid) && (await folderOf(pid)) === real && (await processState(pid)) !== 'Z')
      found.push(pid)
  }
  return found
}

/** A process of another account does not show its folder; it is none of ours either. */
async function folderOf(pid: number): Promise<string | undefined> {
  return ignoring([...GONE, 'EACCES', 'EPERM'], readlink(`/proc/${pid}/cwd`))
}

async function processState(pid: number): Promise<string> {
  return (await statFields(pid))[0] ?? 'Z'
}

/** The fields of /proc/PID/stat from the state on: the name before them may hold blanks and brackets. */
async function statFields(pid: number): Promise<string[]> {
  const text = await ignoring(GONE, readFile(`/proc/${pid}/stat`, 'utf8'))
  return text ? text.slice(text.lastIndexOf(')') + 2).split(' ') : []
}

export async function waitUntil(check: () => Promise<boolean>, withinMs: number, what: string) {
  const deadline = performance.now() + withinMs
  while (!(await check())) {
    if (performance.now() > deadline) throw new Error(`Waited ${withinMs / 1000} s for ${what}.`)
    await delay(10)
  }
}
