import { existsSync, type Stats } from 'node:fs'
import fs from 'node:fs/promises'
import { eachEntry } from '../os/each-entry.ts'
import { readOrNothing } from '../os/process-id.ts'
import { formerOwner, removeTree } from '../os/remove-tree.ts'
import { openQueues, QUEUES } from './message-queues.ts'
import { toolPath } from './tools.ts'
import { runToolAs } from './uids.ts'

/** Where every user may leave something, besides its workspace. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm', '/run/lock', QUEUES]
/** Sticky, and others may write. */
const OPEN_TO_ALL = 0o1002
const SYSVIPC = '/proc/sysvipc'
/** By what `ipcrm` calls them. Each table begins with a line of names. */
const TABLES = { '-m': 'shm', '-s': 'sem', '-q': 'msg' }

type IsTheirs = (uid: number) => boolean

/**
 * Removes what users of runs have left outside of their workspaces: whoever has the number next would find it, and
 * could change it as its own. Nothing of them lives any more. Answers of which of them something is still there.
 */
export async function removeTraces(isTheirs: IsTheirs): Promise<IsTheirs> {
  const staying = new Set<number>()
  const removeTheirs = async (file: Buffer): Promise<unknown> => {
    const found = await lookAt(file)
    if (found === undefined) return undefined
    const uid = formerOwner(found)
    if (isTheirs(uid)) return removeTree(file).catch(() => staying.add(uid))
    return isShared(found) ? eachEntry(file, removeTheirs).catch(unlessGone) : undefined
  }
  await openQueues()
  // Not every system has all of them.
  const folders = SHARED.filter((folder) => existsSync(folder))
  const removing = folders.map((folder) => eachEntry(folder, removeTheirs))
  const ipc = removeIpc(isTheirs).then((owners) => owners.forEach((uid) => staying.add(uid)))
  const removed = await Promise.allSettled([...removing, ipc])
  const wasAllSeen = removed.every(({ status }) => status === 'fulfilled')
  return (uid) => !wasAllSeen || staying.has(uid)
}

/**
 * Undefined: it is gone, or keeps even us from looking, as a mount of FUSE does that another user has made. No user of
 * a run can make one that we see.
 */
async function lookAt(file: Buffer): Promise<Stats | undefined> {
  try {
    return await fs.lstat(file)
  } catch {
    return undefined
  }
}

function unlessGone(error: unknown): void {
  if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
}

/** Such as `/tmp/.X11-unix`: a folder of root for all, where nobody moves what is not his own. */
function isShared(found: Stats): boolean {
  return found.isDirectory() && found.uid === 0 && (found.mode & OPEN_TO_ALL) === OPEN_TO_ALL
}

/** An object of System V IPC. */
interface Shared {
  /** Option of `ipcrm` and id. */
  args: string[]
  /** The user that has made it: that stays so. */
  maker: number
  /** The user that has it: it may be handed to anybody. */
  owner: number
}

/**
 * Answers who has made what is still there. Each is removed as the user whose it is: for that of others root needs a
 * power that a service has not. What somebody else has handed to a user, who never had it, may stay.
 */
async function removeIpc(isTheirs: IsTheirs): Promise<number[]> {
  const found = objectsOf(isTheirs)
  if (found.length === 0) return []
  const byUser = Map.groupBy(found, ({ maker, owner }) => (isTheirs(maker) ? maker : owner))
  for (const [uid, own] of byUser)
    for (let from = 0; from < own.length; from += MOST_AT_ONCE)
      await removeAs(uid, own.slice(from, from + MOST_AT_ONCE))
  return objectsOf(isTheirs).map(({ maker }) => maker)
}

/** Far less than a command line may have. */
const MOST_AT_ONCE = 1000
const REMOVAL_MS = 5_000

async function removeAs(uid: number, objects: readonly Shared[]): Promise<void> {
  const args = objects.flatMap((each) => each.args)
  await runToolAs(uid, [toolPath('ipcrm') ?? 'ipcrm', ...args], REMOVAL_MS)
}

function objectsOf(isTheirs: IsTheirs): Shared[] {
  const all = Object.entries(TABLES).flatMap(([flag, table]) => rowsOf(flag, table))
  return all.filter(({ maker, owner }) => isTheirs(maker) || isTheirs(owner))
}

function rowsOf(flag: string, table: string): Shared[] {
  const [names = [], ...rows] = (readOrNothing(`${SYSVIPC}/${table}`) ?? '')
    .trimEnd()
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  const [owner, maker] = [names.indexOf('uid'), names.indexOf('cuid')]
  // The second column is the id in each of them, under names of its own.
  return rows.map((row) => ({ args: [flag, row[1] ?? ''], maker: Number(row[maker]), owner: Number(row[owner]) }))
}
