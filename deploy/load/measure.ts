import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'

/** The p-th percentile (0 to 1) of a list, which need not be sorted. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? Number.NaN
}

export const median = (values: readonly number[]) => percentile(values, 0.5)

/** Milliseconds since the epoch with the fractions of the monotonic clock; comparable between processes of one host. */
export const now = () => performance.timeOrigin + performance.now()

/** How long a bare `node -e 0` takes from spawn to exit, in milliseconds. */
export function bareSpawnMs(): Promise<number> {
  const since = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore' })
    child.once('error', reject)
    child.once('exit', () => resolve(performance.now() - since))
  })
}

/** Bare spawns a second with `lanes` at a time: what the machine makes at all. */
export async function bareSpawnsPerSecond(lanes: number, count: number): Promise<number> {
  let begun = 0
  const since = performance.now()
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (begun < count) {
        begun++
        await bareSpawnMs()
      }
    }),
  )
  return count / ((performance.now() - since) / 1000)
}

/** Resident memory of a process in MiB. */
export function residentMiB(pid: number): number {
  const kib = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
  return Math.round(Number(kib) / 1024)
}

/** Clock ticks are 10 ms on every Linux that Node runs on. */
const TICK_MS = 10

/** CPU time of a process and of those children that it has reaped, in milliseconds. */
export function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS
}

/** All processes below one, itself included. */
export function familyOf(pid: number): number[] {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8')
    .trim()
    .split(' ')
    .filter(Boolean)
    .map(Number)
  return [pid, ...children.flatMap(familyOf)]
}

export const wait = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
