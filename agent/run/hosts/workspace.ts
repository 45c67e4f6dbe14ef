import { existsSync, lchownSync, lstatSync, mkdirSync, opendirSync, readdirSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { removeTree } from '../../os/remove-tree.ts'

/** One folder per run, readable for nobody else, with `tmp` in it for temporary files. */
export interface Workspaces {
  /** `uid`: the user to whom it is to belong, where that is not ours. */
  take: (uid?: number) => string
  /**
   * Nothing of the run is there when somebody else gets the folder. `isTrusted`: its program acted as we do, with
   * nothing between us. Rejects when the folder cannot be removed.
   */
  giveBack: (folder: string, by: { isTrusted: boolean }) => Promise<void>
  /** A run has left it as it found it. */
  isUntouched: (folder: string) => boolean
}

const MODE = 0o700
const TMP = 'tmp'
const MOST_FREE = 64

/**
 * Most runs leave their folder as they found it. Such a folder is used again where runs are trusted: on some file
 * systems making and removing one takes longer than everything else between two runs. Others could leave to the next
 * run what no look at names and modes shows: a default ACL, flags, extended attributes. Synchronous, because the calls
 * are shorter than a turn of the thread pool.
 */
export function keepWorkspaces(root: string): Workspaces {
  const free: string[] = []
  // Some may still be in use by programs of the agent before this one.
  let made = Math.max(0, ...readdirSync(root).map(Number).filter(Number.isInteger))
  return {
    take: (uid) => {
      const folder = free.pop() ?? make(path.join(root, String((made += 1))))
      if (uid !== undefined) give(folder, uid)
      return folder
    },
    giveBack: async (folder, { isTrusted }) => {
      takeBack(folder)
      if (isTrusted && free.length < MOST_FREE && isUntouched(folder)) free.push(folder)
      else if (!(await isRemovedEmpty(folder))) await removeTree(folder)
    },
    isUntouched,
  }
}

/** From inside out: whoever had it before cannot touch what lies in a folder that is not theirs any more. */
function give(folder: string, uid: number): void {
  lchownSync(path.join(folder, TMP), uid, uid)
  lchownSync(folder, uid, uid)
}

/** From outside in. Only root has users to take it from. */
function takeBack(folder: string): void {
  const uid = process.getuid?.()
  if (uid !== 0) return
  for (const each of [folder, path.join(folder, TMP)]) if (existsSync(each)) lchownSync(each, uid, uid)
}

function make(folder: string): string {
  mkdirSync(folder, { mode: MODE })
  mkdirSync(path.join(folder, TMP), { mode: MODE })
  return folder
}

/** Spares most runs the dozen calls of removing a tree. */
async function isRemovedEmpty(folder: string): Promise<boolean> {
  try {
    await fs.rmdir(path.join(folder, TMP))
    await fs.rmdir(folder)
    return true
  } catch {
    return false
  }
}

function isUntouched(folder: string): boolean {
  return isOursAndHolds(folder, TMP) && isOursAndHolds(path.join(folder, TMP), null)
}

/** A program may have removed the folder, opened it to others, or put a link in its place. */
function isOursAndHolds(folder: string, name: string | null): boolean {
  try {
    const stat = lstatSync(folder)
    return stat.isDirectory() && (stat.mode & 0o7777) === MODE && onlyName(folder) === name
  } catch {
    // Gone or unreadable: it is not as it was.
    return false
  }
}

/** Null for an empty folder, undefined for one with several. There may be millions, which nobody needs to read. */
function onlyName(folder: string): string | null | undefined {
  const entries = opendirSync(folder, { bufferSize: 2 })
  try {
    const [first, second] = [entries.readSync(), entries.readSync()]
    return second === null ? (first?.name ?? null) : undefined
  } finally {
    entries.closeSync()
  }
}
