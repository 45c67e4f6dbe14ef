import { readFileSync } from 'node:fs'
import path from 'node:path'
import { isAlive } from '../os/process-id.ts'
import type { ProcessMark } from '../os/process-id.ts'

/** Whether an agent works in a state folder at this moment. `hidden`: this user may not look. */
export type Daemon = { state: 'running'; pid: number } | { state: 'stopped' | 'never-started' | 'hidden' }

/** By the lock that each agent holds, which says nothing about one that was killed: its process is looked for. */
export function daemonOf(home: string): Daemon {
  const lock = readOr(path.join(home, 'agent.lock'))
  if (lock === 'hidden') return { state: 'hidden' }
  const mark = lock && markIn(lock.text)
  if (mark && isAlive(mark)) return { state: 'running', pid: mark.pid }
  const identity = readOr(path.join(home, 'identity.json'))
  if (identity === 'hidden') return { state: 'hidden' }
  return { state: identity === undefined ? 'never-started' : 'stopped' }
}

function markIn(text: string): ProcessMark | undefined {
  try {
    return JSON.parse(text) as ProcessMark
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Nothing where there is none, or something else in its place; a file that is not ours to read is another matter. */
export function readOr(file: string): { text: string } | 'hidden' | undefined {
  try {
    return { text: readFileSync(file, 'utf8') }
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP'].includes(code)) return undefined
    if (['EACCES', 'EPERM'].includes(code)) return 'hidden'
    throw error
  }
}
