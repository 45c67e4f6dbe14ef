import { randomBytes } from 'node:crypto'
import { rm, writeFile } from 'node:fs/promises'
import path from 'node:path'

/** More than a start writes before it removes the workspaces of programs that are gone. */
const RESERVE_BYTES = 4 * 1024 * 1024

const fileIn = (home: string) => path.join(home, 'reserve')

/**
 * Frees room on the disk of the state folder. What fills it may be the workspace of a program that is gone, and an
 * agent that cannot write cannot get as far as removing that.
 */
export async function giveUpReserve(home: string): Promise<void> {
  await rm(fileIn(home), { force: true })
}

/** Takes it again for the next start. Random bytes, as some file systems keep no others. */
export async function takeReserve(home: string): Promise<void> {
  try {
    await writeFile(fileIn(home), randomBytes(RESERVE_BYTES), { mode: 0o600 })
  } catch {
    // Whatever there is may be of more use to a run.
    await giveUpReserve(home)
  }
}
