import { readFileSync } from 'node:fs'

/** A process as it can be told from a later one with the same number. */
export interface ProcessMark {
  pid: number
  /** Start time in clock ticks since boot, from /proc; empty where there is no /proc. */
  started: string
}

/** In which /proc counts on all that we know, whatever the kernel counts in. */
const TICK_MS = 10

/** Returns undefined when it has ended, also when its parent has not noticed yet (a zombie). */
export function markOf(pid: number): ProcessMark | undefined {
  if (!exists(pid)) return undefined
  const [state = '', started = ''] = statOf(pid)
  return state === 'Z' || state === 'X' ? undefined : { pid, started }
}

export function isAlive(mark: ProcessMark): boolean {
  const now = markOf(mark.pid)
  return now !== undefined && now.started === mark.started
}

/**
 * Whether it is this very process, and anything of it goes on: where the first thread alone has ended, it looks like a
 * zombie.
 */
export function isRunning({ pid, started }: ProcessMark): boolean {
  const [state = '', since, threads] = statOf(pid)
  return since === started && !(['Z', 'X'].includes(state) && Number(threads) <= 1)
}

/** In milliseconds since the epoch, by the clock of now. */
export function startedAt({ started }: ProcessMark): number {
  return Math.floor(Date.now() - sinceBootMs() + Number(started) * TICK_MS)
}

/** Whether another process has its number by now. Some systems hide processes (`hidepid`): then nobody can tell. */
export function isReplaced({ pid, started }: ProcessMark): boolean {
  const [, since] = statOf(pid)
  return since !== undefined && since !== started
}

/** The name of this boot of the machine: what was only in the page cache is gone with it. Empty where there is none. */
export function bootId(): string {
  return readOrNothing('/proc/sys/kernel/random/boot_id')?.trim() ?? ''
}

/** Milliseconds since the machine's start, sleep included; undefined where there is no /proc. */
export function uptimeMs(): number | undefined {
  const uptime = readOrNothing('/proc/uptime')
  return uptime === undefined ? undefined : Number.parseFloat(uptime) * 1000
}

/**
 * Milliseconds since the machine's start, the same in all its processes: wall clocks jump. It goes on while the machine
 * sleeps (CLOCK_BOOTTIME), and so do the leases. Where there is no /proc, as on macOS, it does not; there nothing is
 * taken back, as no boot has a name.
 */
export function sinceBootMs(): number {
  return uptimeMs() ?? Number(process.hrtime.bigint() / 1_000_000n)
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    // EPERM: it lives, and belongs to somebody else.
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** State, start and threads. The name before them, in brackets, may hold anything: counting starts behind it. */
function statOf(pid: number): (string | undefined)[] {
  const stat = readOrNothing(`/proc/${pid}/stat`)
  const fields = stat?.slice(stat.lastIndexOf(')') + 2).split(' ') ?? []
  return [fields[0], fields[19], fields[17]]
}

export function readOrNothing(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    // Processes vanish while one looks at them (ENOENT, ESRCH), and some are not ours to read.
    const code = (error as NodeJS.ErrnoException).code ?? ''
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENOTDIR'].includes(code)) return undefined
    throw error
  }
}
