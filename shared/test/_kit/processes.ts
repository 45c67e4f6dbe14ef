import { readFileSync } from 'node:fs'
import { untilPolled } from './until.ts'

/** Returns whether a process has ended, zombies included. */
export function isGone(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return ['Z', 'X'].includes(stat.slice(stat.lastIndexOf(')') + 2)[0] ?? '')
  } catch {
    // It vanished, which is what we wanted to know.
    return true
  }
}

/** The kernel tells nobody but a parent that a process has ended. */
export function untilGone(what: string, pid: number): Promise<boolean> {
  return untilPolled(`${what} is gone`, () => isGone(pid))
}
