import { existsSync } from 'node:fs'
import { link, open, rm, stat } from 'node:fs/promises'
import path from 'node:path'
import { pause } from '@windlass/shared/time.ts'
import { isFull } from './disk-full.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { isAlive, markOf, readOrNothing } from './os/process-id.ts'
import type { ProcessMark } from './os/process-id.ts'

export interface StateLock {
  release(): Promise<void>
}

const TRIES = 100
/** How often this process has asked for a lock: each time by a file of its own. */
let asked = 0
/** A takeover is a few file operations; one that is older was cut short. */
const TAKEOVER_STALE_MS = 5000

/**
 * One agent per state folder. The lock is a file with the holder's process number and start time, made by `link` so that
 * it appears with its content or not at all; the lock of a dead agent is taken over. On a full disk that is all that
 * can be had, and what fills the disk is removed by whoever has the lock.
 */
export async function lockState(folder: string): Promise<StateLock> {
  const file = path.join(folder, 'agent.lock')
  const mine = path.join(folder, `agent.lock.${process.pid}.${(asked += 1)}`)
  const lock = { release: () => rm(file, { force: true }) }
  try {
    const full = await writeMark(mine, 'w').catch(ifFull)
    // Without one of a dead agent there is no room for a lock.
    if (full && !existsSync(file)) throw full
    for (let tries = 0; tries < TRIES; tries++) {
      if (!full && (await linked(mine, file))) return lock
      const holder = readMark(file)
      if (holder && isAlive(holder)) throw inUse(folder, holder)
      const isTaken = await ifStale(file, mine, () => (full ? writeMark(file, 'r+') : rm(file, { force: true })))
      if (full && isTaken) return lock
      await pause(20)
    }
  } finally {
    await rm(mine, { force: true })
  }
  throw new AgentRefusal(EXIT.inUse, `Could not lock ${folder}; remove ${file} if no agent works there.`)
}

/**
 * Two agents may find the same stale lock: only the one that holds the second lock acts on it, after another look.
 * Answers whether that was us.
 */
async function ifStale(file: string, mine: string, act: () => Promise<void>): Promise<boolean> {
  const takeover = `${file}.takeover`
  if (!(await linked(mine, takeover))) return removeIfOld(takeover)
  try {
    const holder = readMark(file)
    if (holder && isAlive(holder)) return false
    await act()
    return true
  } finally {
    await rm(takeover, { force: true })
  }
}

async function removeIfOld(file: string): Promise<false> {
  const found = await stat(file).catch(ifMissing)
  if (found && Date.now() - found.ctimeMs > TAKEOVER_STALE_MS) await rm(file, { force: true })
  return false
}

async function linked(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** With `r+` in place of another mark, for which a full disk has room on most file systems. */
async function writeMark(file: string, flag: 'w' | 'r+'): Promise<void> {
  const text = JSON.stringify(markOf(process.pid))
  const handle = await open(file, flag, 0o600)
  try {
    await handle.writeFile(text)
    await handle.truncate(text.length)
  } finally {
    await handle.close()
  }
}

/** Returns undefined when the file is missing, or is not the mark of a process. */
export function readMark(file: string): ProcessMark | undefined {
  const text = readOrNothing(file)
  if (!text) return undefined
  try {
    const mark = JSON.parse(text) as Partial<ProcessMark> | null
    if (!Number.isInteger(mark?.pid) || typeof mark?.started !== 'string') return undefined
    return mark as ProcessMark
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

function inUse(folder: string, holder: ProcessMark): AgentRefusal {
  const advice = 'Stop it, or give this one a folder of its own with WINDLASS_AGENT_HOME.'
  return new AgentRefusal(EXIT.inUse, `Process ${holder.pid} is an agent that works in ${folder}. ${advice}`)
}

function ifFull(error: unknown): Error {
  if (isFull(error)) return error as Error
  throw error
}

function ifMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
  throw error
}
