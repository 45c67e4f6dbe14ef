import { closeSync, readdirSync } from 'node:fs'
import { readOrNothing } from './os/process-id.ts'

const CLOSED_BY_EXEC = 0o2000000

/**
 * Closes what whoever started this process has left open in it by oversight: every program of a run would have it too. Node itself leaves
 * nothing open to the processes that it starts, and takes care of low numbers; there is no call to mark the others.
 */
export function closeInheritedFiles(): void {
  for (const fd of openFiles()) {
    const flags = /^flags:\s*(\d+)$/m.exec(readOrNothing(`/proc/self/fdinfo/${fd}`) ?? '')?.[1]
    if (flags !== undefined && (parseInt(flags, 8) & CLOSED_BY_EXEC) === 0) closeSync(fd)
  }
}

function openFiles(): number[] {
  try {
    return readdirSync('/proc/self/fd')
      .map(Number)
      .filter((fd) => fd > 2)
  } catch {
    // Where there is no /proc, isolation is no more than a process of its own.
    return []
  }
}
