import { readFileSync } from 'node:fs'

/** The kernel counts for its readers in hundredths of a second, whatever its own clock. */
const TICK_MICROS = 10_000

/** Processor time of a process and its threads; undefined where the system does not tell (no /proc) or it is gone. */
export function cpuMicrosOf(pid: number): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    // The name in brackets may hold spaces and brackets itself. Fields 14 and 15: user and system.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return (Number(fields[11]) + Number(fields[12])) * TICK_MICROS
  } catch {
    return undefined
  }
}
