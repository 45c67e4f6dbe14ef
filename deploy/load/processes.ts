/** Reads CPU and memory of processes from /proc. Any of them may end while it is read. */
import { readdirSync, readFileSync } from 'node:fs'

/** Clock ticks are 10 ms on every Linux that Node runs on. */
const TICK_MS = 10
const NS_PER_MS = 1e6
const GONE = new Set(['ENOENT', 'ESRCH'])

/** Returns undefined when the process ends before or during `read`. */
function unlessGone<T>(read: () => T): T | undefined {
  try {
    return read()
  } catch (error) {
    if (error instanceof Error && 'code' in error && GONE.has(String(error.code))) return undefined
    throw error
  }
}

/** A process and all its descendants; nothing when it has ended. */
export function familyOf(pid: number): number[] {
  const text = unlessGone(() => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))
  if (text === undefined) return []
  return [pid, ...text.trim().split(' ').filter(Boolean).map(Number).flatMap(familyOf)]
}

/** Resident memory of a process in MiB; undefined when it has ended. */
export function residentMiB(pid: number): number | undefined {
  const status = unlessGone(() => readFileSync(`/proc/${pid}/status`, 'utf8'))
  // A zombie has no memory any more.
  const kib = status === undefined ? undefined : /^VmRSS:\s+(\d+)/m.exec(status)?.[1]
  return kib === undefined ? undefined : Math.round(Number(kib) / 1024)
}

/** The same, but throws when the process has ended. */
export function livingMiB(pid: number, name: string): number {
  const mib = residentMiB(pid)
  if (mib === undefined) throw new Error(`the ${name} has ended`)
  return mib
}

/** Resident memory of those that still exist. */
export function residentMiBs(pids: readonly number[]): number[] {
  return pids.map(residentMiB).filter((mib) => mib !== undefined)
}

/** CPU time of one process so far, ended threads included, in milliseconds; zero when it has ended. */
export function ownCpuMs(pid: number): number {
  // The scheduler counts nanoseconds of each living thread; ticks are coarse, and remember the threads that have ended.
  return Math.max(scheduledMs(pid), ticksMs(pid)?.own ?? 0)
}

/** CPU time of the children that a process has reaped, and of theirs, in milliseconds. */
export function reapedCpuMs(pid: number): number {
  return ticksMs(pid)?.reaped ?? 0
}

/** CPU time of a process and of all below it so far, those that have ended included. */
export function treeCpuMs(pid: number): number {
  return familyOf(pid).reduce((sum, each) => sum + ownCpuMs(each) + reapedCpuMs(each), 0)
}

function scheduledMs(pid: number): number {
  const threads = unlessGone(() => readdirSync(`/proc/${pid}/task`)) ?? []
  const ns = threads.map((thread) => unlessGone(() => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8')))
  return ns.reduce((sum, text) => sum + Number(text?.split(' ')[0] ?? 0), 0) / NS_PER_MS
}

function ticksMs(pid: number): { own: number; reaped: number } | undefined {
  const stat = unlessGone(() => readFileSync(`/proc/${pid}/stat`, 'utf8'))
  if (stat === undefined) return undefined
  // The command's name stands in brackets and may contain brackets.
  const fields = stat.slice(stat.lastIndexOf(') ') + 2).split(' ')
  const ticks = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) * TICK_MS
  return { own: ticks(11), reaped: ticks(13) }
}

/** Peak resident memory of a process in MiB during `act`. */
export async function peakMiB<T>(pid: number, act: () => Promise<T>): Promise<{ peak: number; result: T }> {
  let peak = residentMiB(pid) ?? 0
  const watch = setInterval(() => (peak = Math.max(peak, residentMiB(pid) ?? 0)), PEAK_LOOK_MS)
  try {
    const result = await act()
    return { peak, result }
  } finally {
    clearInterval(watch)
  }
}

const PEAK_LOOK_MS = 100
