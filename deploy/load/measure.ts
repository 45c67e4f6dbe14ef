import { spawn } from 'node:child_process'
import { reapedCpuMs } from './processes.ts'

/** The p-th percentile (0 to 1) of a list, which need not be sorted. */
export function percentile(values: readonly number[], p: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))] ?? Number.NaN
}

export const median = (values: readonly number[]) => percentile(values, 0.5)

/** Splits the samples into one list for each repeat, in their order. */
export function byRepeat<T>(samples: readonly T[], repeats: number): T[][] {
  const size = Math.ceil(samples.length / repeats)
  return Array.from({ length: repeats }, (_, i) => samples.slice(i * size, (i + 1) * size)).filter(
    (part) => part.length,
  )
}

/**
 * Milliseconds of the monotonic clock, the same for all processes of a host. Programs use `process.hrtime` too: it is
 * there from the start, while the first use of `performance` takes a fresh process 1.5 ms.
 */
export const now = () => Number(process.hrtime.bigint()) / 1e6

/** How long a bare `node -e 0` takes from spawn to exit, in milliseconds. */
export function bareSpawnMs(): Promise<number> {
  const since = performance.now()
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ['-e', '0'], { stdio: 'ignore', timeout: SPAWN_MS, killSignal: 'SIGKILL' })
    child.once('error', reject)
    child.once('exit', (code) => {
      if (code === 0) resolve(performance.now() - since)
      else reject(new Error(`a bare process did not end by itself within ${SPAWN_MS} ms`))
    })
  })
}

const SPAWN_MS = 30_000

/** Bare spawns with `lanes` at a time: what the machine makes at all. */
export async function bareSpawns(lanes: number, count: number): Promise<{ perSecond: number; cpuMs: number }> {
  let begun = 0
  const since = performance.now()
  const cpuBefore = reapedCpuMs(process.pid)
  await Promise.all(
    Array.from({ length: lanes }, async () => {
      while (begun < count) {
        begun++
        await bareSpawnMs()
      }
    }),
  )
  const perSecond = count / ((performance.now() - since) / 1000)
  return { perSecond, cpuMs: (reapedCpuMs(process.pid) - cpuBefore) / count }
}

export const wait = (ms: number) => new Promise<void>((resolve) => void setTimeout(resolve, ms))
