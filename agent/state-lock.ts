import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { link, open, rename, rm, stat, type FileHandle } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { isFull } from './disk-full.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { lockAt, LockWatch, lookByNumber, thisHolder, TOUCHES_MISSED, type Look } from './lock-holder.ts'

export interface StateLock {
  release(): Promise<void>
}

const TRIES = 100
/** A takeover is a few file operations; one that is older was cut short. */
const TAKEOVER_STALE_MS = 5000
/** A touch is one call. A holder that missed some of them is taken for dead, 12 s after somebody asked. */
const TOUCH_MS = 3_000

interface Waiting {
  log?: Log | undefined
  /** Ends the wait for a holder that cannot be seen from here. */
  signal?: AbortSignal
  touchMs?: number
}

/**
 * One agent per state folder. The lock is a file that says who holds it, made by `link` so that it appears with its
 * content or not at all; the lock of a dead agent is taken over. On a full disk that is all that can be had, and what
 * fills the disk is removed by whoever has the lock. The folder may be shared with other containers and machines, whose
 * processes cannot be seen: so each holder touches its lock.
 */
export function lockState(folder: string, { log, signal, touchMs = TOUCH_MS }: Waiting = {}): Promise<StateLock> {
  const watch = new LockWatch(lockIn(folder), touchMs)
  const wait = async ({ holder }: Look, isFirst: boolean) => {
    const withinMs = TOUCHES_MISSED * touchMs
    if (isFirst) log?.warn('state.lock.waiting', { folder, pid: holder?.pid, withinMs, advice: UNSEEN })
    await pause(watch.lookMs, signal)
    if (signal?.aborted) throw new AgentRefusal(EXIT.stopped, `Stopped before ${folder} was locked.`)
  }
  return lockBy(folder, { look: (fresh) => watch.look(fresh), wait, touchMs })
}

/** Where only processes of this machine come, in this container: those of others are taken for dead. */
export function lockHere(folder: string): Promise<StateLock> {
  const file = lockIn(folder)
  return lockBy(folder, { look: () => lookByNumber(file), wait: () => pause(20) })
}

const lockIn = (folder: string) => path.join(folder, 'agent.lock')

interface Judge {
  /** `fresh` is a file that was just made beside the lock. */
  look: (fresh: string) => Look
  wait: (look: Look, isFirst: boolean) => Promise<void>
  /** Nobody looks at it where this is missing. */
  touchMs?: number
}

async function lockBy(folder: string, { look, wait, touchMs }: Judge): Promise<StateLock> {
  const file = lockIn(folder)
  // All containers number their processes alike.
  const mine = path.join(folder, `agent.lock.${randomBytes(6).toString('hex')}`)
  try {
    const full = await writeMark(mine, 'w').catch(ifFull)
    // Without one of a dead agent there is no room for a lock.
    if (full && !existsSync(file)) throw full
    let isFirst = true
    for (let tries = 0; tries < TRIES;) {
      if (!full && (await linked(mine, file))) return await held(file, touchMs)
      const found = look(mine)
      if (found.state === 'alive') throw inUse(folder, found)
      if (found.state === 'unsure') {
        await wait(found, isFirst)
        isFirst = false
        continue
      }
      tries += 1
      if (full && found.state === 'missing') throw full
      const act = ({ lock }: Look) => (full ? writeMark(file, 'r+') : removeThat(lock, file, `${mine}.dead`))
      const isTaken = found.state === 'dead' && (await ifDead(file, mine, () => look(mine), act))
      if (full && isTaken) return await held(file, touchMs)
      await pause(20)
    }
  } finally {
    await rm(mine, { force: true })
  }
  throw new AgentRefusal(EXIT.inUse, `Could not lock ${folder}; remove ${file} if no agent works there.`)
}

/** Touches the very file that was locked, whatever has its name by then. */
async function held(file: string, touchMs: number | undefined): Promise<StateLock> {
  const handle = await open(file, 'r+')
  const touch = () => {
    const now = new Date()
    // A disk that is gone is noticed by all else that is written there.
    handle.utimes(now, now).catch(() => {})
  }
  const timer = touchMs === undefined ? undefined : setInterval(touch, touchMs).unref()
  return {
    async release() {
      clearInterval(timer)
      const isOurs = await isSame(handle, file)
      await handle.close()
      if (isOurs) await rm(file, { force: true })
    },
  }
}

/** An agent that stood still for long finds the lock of the one that has taken its folder over. */
async function isSame(handle: FileHandle, file: string): Promise<boolean> {
  const [ours, found] = await Promise.all([
    handle.stat({ bigint: true }),
    stat(file, { bigint: true }).catch(ifMissing),
  ])
  return found?.ino === ours.ino && found.dev === ours.dev
}

/**
 * Two agents may find the same dead lock: only the one that holds the second lock acts on it, after another look.
 * Answers whether that was us.
 */
async function ifDead(
  file: string,
  mine: string,
  look: () => Look,
  act: (dead: Look) => Promise<void>,
): Promise<boolean> {
  const takeover = `${file}.takeover`
  if (!(await linked(mine, takeover))) return removeIfOld(takeover)
  const ours = lockAt(takeover)
  try {
    const found = look()
    if (found.state !== 'dead') return false
    await act(found)
    return true
  } finally {
    // One that stood still for long finds that of another.
    if (lockAt(takeover) === ours) await rm(takeover, { force: true })
  }
}

/** Moves it away first, and looks at what was moved: after a stop of this process another lock may have its name. */
async function removeThat(lock: string, file: string, away: string): Promise<void> {
  try {
    await rename(file, away)
  } catch (error) {
    return ifMissing(error)
  }
  try {
    if (lockAt(away) !== lock) await linked(away, file)
  } finally {
    await rm(away, { force: true })
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
  const text = JSON.stringify(thisHolder())
  const handle = await open(file, flag, 0o600)
  try {
    await handle.writeFile(text)
    await handle.truncate(text.length)
  } finally {
    await handle.close()
  }
}

const ADVICE =
  'Stop it, or give this one a folder of its own with WINDLASS_AGENT_HOME; in a container that is a volume of its own.'
const UNSEEN =
  'The lock is of an agent in another container or on another machine. It is taken over unless that agent still works.'

function inUse(folder: string, { holder, isSeen }: Look): AgentRefusal {
  const pid = holder?.pid
  const whose = isSeen
    ? `Process ${pid} is an agent that works in ${folder}.`
    : `An agent in another container or on another machine works in ${folder} (process ${pid} there).`
  return new AgentRefusal(EXIT.inUse, `${whose} ${ADVICE}`)
}

function ifFull(error: unknown): Error {
  if (isFull(error)) return error as Error
  throw error
}

function ifMissing(error: unknown): undefined {
  if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
  throw error
}
