import { chmodSync, chownSync, existsSync, lstatSync, readdirSync } from 'node:fs'
import path from 'node:path'

/** May be passed through, and not listed. */
const PASSABLE = 0o711
const PASSABLE_BY_GROUP = 0o710
const READABLE = 0o755
const OTHERS = 0o077

/**
 * Lets the users of runs through to what is theirs. Whatever else is in the state folder, now and later, is closed to
 * them: key, spool, status, logs.
 */
export function openStateFolder(home: string, passable: readonly string[]): void {
  process.umask(OTHERS)
  for (const name of readdirSync(home)) if (!passable.includes(name)) close(path.join(home, name))
  for (const name of passable.filter((each) => existsSync(path.join(home, each))))
    chmodSync(path.join(home, name), PASSABLE)
  chmodSync(home, PASSABLE)
}

/** All below it can be read by everybody and written by nobody else. Done once: the folder itself comes last. */
export function openToRead(folder: string): void {
  if ((lstatSync(folder).mode & 0o777) === READABLE) return
  openBelow(folder)
}

function openBelow(folder: string): void {
  for (const entry of readdirSync(folder, { withFileTypes: true })) {
    const file = path.join(folder, entry.name)
    if (entry.isDirectory()) openBelow(file)
    else if (entry.isFile()) chmodSync(file, asForOwner(lstatSync(file).mode))
  }
  chmodSync(folder, READABLE)
}

/** What the owner may read and execute, others may too. */
function asForOwner(mode: number): number {
  const owner = mode & 0o500
  return (mode & 0o700) | (owner >> 3) | (owner >> 6)
}

/** A folder that is there already may be passed through by this group and nobody else. */
export function openToGroup(folder: string, group: number): void {
  const { mode, uid, gid } = lstatSync(folder)
  if ((mode & 0o777) === PASSABLE_BY_GROUP && gid === group) return
  // Closed first: what it is open to now may not be that group.
  chmodSync(folder, 0o700)
  chownSync(folder, uid, group)
  chmodSync(folder, PASSABLE_BY_GROUP)
}

function close(file: string): void {
  const stat = lstatSync(file)
  if (!stat.isSymbolicLink() && (stat.mode & OTHERS) !== 0) chmodSync(file, stat.mode & 0o700)
}
