import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

/** More than a start writes. */
const RESERVE_BYTES = 4 * 1024 * 1024
/** What a start writes at most, so that it waits for nothing where the reserve was there to be given up. */
const START_BYTES = RESERVE_BYTES / 2

const fileIn = (home: string) => path.join(home, 'reserve')

/**
 * Frees room on the disk of the state folder. What fills it may be the workspace of a program that is gone, which may
 * take longer to remove than the other programs' leases last.
 */
export async function giveUpReserve(home: string): Promise<void> {
  await rm(fileIn(home), { force: true })
}

/** Takes it again for the next start. Answers whether there was room. */
export async function takeReserve(home: string): Promise<boolean> {
  if (await hasWritten(home, RESERVE_BYTES)) return true
  // Whatever there is may be of more use to a run.
  await giveUpReserve(home)
  return false
}

/** Whether a start can write what it has to. Tried, as figures of the disk know nothing of a user's share of it. */
export async function hasRoom(home: string): Promise<boolean> {
  const isThere = await hasWritten(home, START_BYTES)
  await giveUpReserve(home)
  return isThere
}

/** Random bytes, as some file systems keep no others. */
async function hasWritten(home: string, bytes: number): Promise<boolean> {
  try {
    await writeFile(fileIn(home), randomBytes(bytes), { mode: 0o600 })
    return true
  } catch {
    return false
  }
}
