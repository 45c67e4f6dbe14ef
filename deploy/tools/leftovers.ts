import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as wait } from 'node:timers/promises'

export interface Leftover {
  readonly pid: number
  readonly command: string
}

/** Why leftovers cannot be looked for here; nothing where they can. */
export const unsupported = existsSync('/proc/self/environ') ? undefined : `${process.platform} has no /proc`

/**
 * Processes that carry the mark in their environment, command line or working folder. A program that an agent started
 * inherits no environment, but it works in a folder below the marked one.
 */
export function processesMarked(mark: string): Leftover[] {
  const pids = readdirSync('/proc').filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
  return pids.flatMap((pid) => {
    const command = read(() => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    const texts = [
      command,
      read(() => readFileSync(`/proc/${pid}/environ`, 'utf8')),
      read(() => readlinkSync(`/proc/${pid}/cwd`)),
    ]
    return texts.some((text) => text.includes(mark)) ? [{ pid: Number(pid), command: readable(command) }] : []
  })
}

/** What is still there after a moment: a process that was told to end may need one. */
export async function leftovers(mark: string, patienceMs: number): Promise<Leftover[]> {
  const deadline = performance.now() + patienceMs
  let found = processesMarked(mark)
  while (found.length > 0 && performance.now() < deadline) {
    await wait(50)
    found = processesMarked(mark)
  }
  return found
}

export function endLeftovers(found: readonly Leftover[]): void {
  for (const { pid } of found) {
    try {
      process.kill(pid, 'SIGKILL')
    } catch (error) {
      // It ended by itself since it was seen.
      if (codeOf(error) !== 'ESRCH') throw error
    }
  }
}

/** A process may end while it is looked at, another user's is none of ours, nor is one in too deep a folder. */
function read(file: () => string): string {
  try {
    return file()
  } catch (error) {
    if (['ENOENT', 'ESRCH', 'EACCES', 'EPERM', 'ENAMETOOLONG'].includes(codeOf(error))) return ''
    throw error
  }
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : ''
}

function readable(command: string): string {
  return command.split('\0').join(' ').trim()
}
