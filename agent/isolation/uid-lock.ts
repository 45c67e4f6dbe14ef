import { accessSync, chmodSync, constants, existsSync, lstatSync, mkdirSync, readdirSync } from 'node:fs'
import { rmdir } from 'node:fs/promises'
import path from 'node:path'
import { ownerAmong } from '@windlass/shared/user-ids.ts'
import { AgentRefusal, EXIT } from '../exit-codes.ts'
import { isAlive } from '../os/process-id.ts'
import type { ProcessMark } from '../os/process-id.ts'
import { readMark } from '../lock-holder.ts'
import { lockHere } from '../state-lock.ts'
import type { StateLock } from '../state-lock.ts'
import type { UidRange } from './plan.ts'

/** Folder of the locks, one for the machine. It is empty after a boot. */
export const LOCKS = '/run/windlass-uids'
const NAME = /^(\d+)-(\d+)$/
const TRIES = 20

/**
 * Two agents with the same users would kill each other's runs, and let them read one another. Whatever else runs as one
 * of them would be killed as well.
 */
export async function lockUids(range: UidRange): Promise<StateLock> {
  const owner = ownerAmong(range)
  if (owner !== undefined) throw new AgentRefusal(EXIT.config, `${owner} ${advice(range)}`)
  const trouble = whyNoLocks()
  if (trouble !== undefined) throw new AgentRefusal(EXIT.config, `${trouble} WINDLASS_AGENT_RUN_UIDS needs it.`)
  refuseOverlap(range)
  const folder = path.join(LOCKS, `${range.first}-${range.last}`)
  const lock = await lockIn(folder)
  try {
    // Another agent may have looked at the same moment, when neither had its lock.
    refuseOverlap(range)
  } catch (error) {
    await lock.release()
    throw error
  }
  return {
    async release() {
      await lock.release()
      await rmdir(folder).catch((error: NodeJS.ErrnoException) => {
        // Another agent has taken it meanwhile, or has taken it and gone.
        if (error.code !== 'ENOTEMPTY' && error.code !== 'ENOENT') throw error
      })
    },
  }
}

/** Another agent that ends removes the folder while it is empty. */
async function lockIn(folder: string, tries = TRIES): Promise<StateLock> {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    return await lockHere(folder)
  } catch (error) {
    if (tries === 1 || (error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return lockIn(folder, tries - 1)
  }
}

/**
 * Returns why agents cannot note here which users are theirs. The folder is closed to everybody else first: Kubernetes
 * makes it open to all, and programs could plant locks in it, and links.
 */
export function whyNoLocks(folder = LOCKS): string | undefined {
  try {
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const found = lstatSync(folder)
    if (!found.isDirectory() || found.uid !== process.geteuid?.())
      return `${folder} must be a folder of root, and is a link or belongs to somebody else: remove it.`
    if ((found.mode & 0o077) !== 0) chmodSync(folder, 0o700)
    accessSync(folder, constants.W_OK)
    return undefined
  } catch {
    return `${folder} cannot be written, where agents note which users are theirs.`
  }
}

/** Returns whether no user, container or other agent is known to have these ids. */
export function isFree(range: UidRange): boolean {
  return ownerAmong(range) === undefined && holderAmong(range) === undefined
}

function refuseOverlap(range: UidRange): void {
  const holder = holderAmong(range)
  if (holder) throw inUse(range, holder)
}

/** Returns another live agent that has some of these ids. */
function holderAmong(range: UidRange): ProcessMark | undefined {
  if (!existsSync(LOCKS)) return undefined
  for (const name of readdirSync(LOCKS)) {
    const holder = overlaps(name, range) ? readMark(path.join(LOCKS, name, 'agent.lock')) : undefined
    if (holder && holder.pid !== process.pid && isAlive(holder)) return holder
  }
  return undefined
}

function overlaps(name: string, { first, last }: UidRange): boolean {
  const [, from, to] = NAME.exec(name) ?? []
  return Number(from) <= last && Number(to) >= first
}

function inUse(range: UidRange, holder: ProcessMark): AgentRefusal {
  const message = `User ids of ${range.first}-${range.last} belong to the runs of another agent, process ${holder.pid}.`
  return new AgentRefusal(EXIT.config, `${message} ${advice(range)}`)
}

const advice = ({ first, last }: UidRange) =>
  `Give this agent a range of its own instead of ${first}-${last} with WINDLASS_AGENT_RUN_UIDS.`
