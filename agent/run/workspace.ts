import { mkdirSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'

let made = 0

/** A folder for one run, readable for nobody else. Synchronous: two folders take less time than one turn of the thread pool. */
export function makeWorkspace(root: string, runId: string): string {
  made += 1
  const folder = path.join(root, `${made}-${runId.replace(/[^\w-]/g, '')}`)
  mkdirSync(folder, { mode: 0o700 })
  mkdirSync(path.join(folder, 'tmp'), { mode: 0o700 })
  return folder
}

/** Nearly every run leaves its folder as it was; then this is two system calls. */
export async function removeWorkspace(folder: string): Promise<void> {
  try {
    await fs.rmdir(path.join(folder, 'tmp'))
    await fs.rmdir(folder)
  } catch {
    // Not empty, or not a folder any more.
    await fs.rm(folder, { recursive: true, force: true, maxRetries: 3 })
  }
}

/** What an agent that was killed has left behind. */
export async function emptyWorkspaces(root: string): Promise<void> {
  await fs.rm(root, { recursive: true, force: true })
  await fs.mkdir(root, { recursive: true, mode: 0o700 })
}
