import { constants, type Stats } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { eachEntry } from './each-entry.ts'

/** Whoever is still at work in there may add something between our look and the removal. */
const MOST_ROUNDS = 20
/** Entries of one round: a program may have made millions in one folder. */
const MOST_ENTRIES = 100_000
/** Rounds with so many; far more than a disk has room for. */
const MOST_FULL_ROUNDS = 10_000
const OURS = 0o700
/** Begins the names of folders in which something is being removed, or was when its agent ended. */
export const ASIDE = 'gone-'

interface Pace {
  /** Entries at a time. */
  atOnce?: number
  /** Ends the removal in its midst, which then rejects; what is left is removed like any other folder. */
  signal?: AbortSignal | undefined
}

/**
 * Removes a folder that a program has filled as it liked: with folders deeper than a path may be long, closed to their owner, with names
 * that are no text, with links that take the place of folders at this very moment. Only we may change entries where it lies.
 *
 * Folders are moved out to a place of ours before they are looked into. So of all paths here only the last part can be changed by a
 * program, and neither moving nor unlinking follows that.
 *
 * What root is emptying has root as owner, and as group the number of the user whose it was: after a kill `formerOwner`
 * says so.
 */
export async function removeTree(folder: string | Buffer, pace: Pace = {}): Promise<void> {
  if (await isUnlinked(folder)) return
  const aside = await fs.mkdtemp(path.join(path.dirname(String(folder)), ASIDE))
  if (isRoot()) await fs.chown(aside, 0, formerOwner(await fs.lstat(folder)))
  const found: (string | Buffer)[] = [folder]
  let moved = 0
  const moveOut = async (entry: Buffer) => {
    const target = path.join(aside, String((moved += 1)))
    if (await moveTo(target, entry)) found.push(target)
  }
  for (let next = found.pop(); next !== undefined; next = found.pop()) await removeOne(next, moveOut, pace)
  await fs.rmdir(aside)
}

async function removeOne(
  target: string | Buffer,
  moveOut: (entry: Buffer) => Promise<void>,
  pace: Pace,
): Promise<void> {
  const take = async (entry: Buffer) => {
    if (!(await isUnlinked(entry))) await moveOut(entry)
  }
  let [rounds, fullRounds] = [0, 0]
  while (!(await isUnlinked(target))) {
    pace.signal?.throwIfAborted()
    if (isRoot()) await takeOver(target)
    else await fs.chmod(target, OURS)
    if ((await eachEntry(target, take, { ...pace, most: MOST_ENTRIES })) < MOST_ENTRIES) rounds += 1
    else fullRounds += 1
    if (await isRemoved(target, rounds < MOST_ROUNDS && fullRounds < MOST_FULL_ROUNDS)) return
  }
}

/** For a removal that comes later. Rejects where it is no folder. */
export async function takeFromUser(folder: string): Promise<void> {
  if (isRoot()) await takeOver(folder)
}

/** A folder that was open to others would be filled again as fast as it is emptied. No link is followed. */
async function takeOver(folder: string | Buffer): Promise<void> {
  const handle = await fs.open(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW)
  try {
    await handle.chown(0, formerOwner(await handle.stat()))
    await handle.chmod(OURS)
  } finally {
    await handle.close()
  }
}

/** Whose it was before a removal that may have been cut off; 0: ours. */
export function formerOwner({ uid, gid, mode }: Pick<Stats, 'uid' | 'gid' | 'mode'>): number {
  return uid === 0 && (mode & 0o777) === OURS ? gid : uid
}

/** False when it is a folder, whatever it was a moment ago. */
async function isUnlinked(entry: string | Buffer): Promise<boolean> {
  try {
    await fs.unlink(entry)
    return true
  } catch (error) {
    if (is(error, 'ENOENT')) return true
    // What POSIX wants to be said of a folder, and what Linux says.
    if (is(error, 'EPERM', 'EISDIR')) return false
    throw error
  }
}

/** False when it is there no more. */
async function moveTo(target: string, entry: Buffer): Promise<boolean> {
  try {
    await fs.rename(entry, target)
  } catch (error) {
    if (is(error, 'ENOENT')) return false
    // Its `..` changes, so that it has to be open to its owner. Nothing is closed to root, who must not change what a link leads to.
    if (!is(error, 'EACCES') || isRoot()) throw error
    await fs.chmod(entry, OURS)
    await fs.rename(entry, target)
  }
  return true
}

async function isRemoved(target: string | Buffer, mayHoldMore: boolean): Promise<boolean> {
  try {
    await fs.rmdir(target)
    return true
  } catch (error) {
    if (mayHoldMore && is(error, 'ENOTEMPTY', 'EEXIST')) return false
    throw error
  }
}

function is(error: unknown, ...codes: string[]): boolean {
  return codes.includes((error as NodeJS.ErrnoException).code ?? '')
}

function isRoot(): boolean {
  return process.getuid?.() === 0
}
