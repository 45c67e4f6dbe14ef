import { access, constants, statfs } from 'node:fs/promises'
import { littleRoom } from '@windlass/shared/disk-room.ts'
import type { Check } from './checks.ts'

const MIB = 1024 * 1024
const LEAST_INODES = 0.01
const FRESH_MS = 2_000

/**
 * Room on the disk of the state folder: bundles, workspaces and what runs report all lie there. `makeRoom` gives back what can be
 * had again.
 */
export function diskChecks(home: string, reserveBytes: number | undefined, makeRoom = () => {}): Check[] {
  const orMakeRoom = async (trouble: Promise<string | undefined>) => {
    const found = await trouble
    // The next look shows whether that was enough.
    if (found !== undefined) makeRoom()
    return found
  }
  return [
    { name: 'disk', freshMs: FRESH_MS, look: () => orMakeRoom(lookAtBytes(home, reserveBytes)) },
    { name: 'inodes', freshMs: FRESH_MS, look: () => orMakeRoom(lookAtInodes(home)) },
  ]
}

async function lookAtBytes(home: string, reserveBytes: number | undefined): Promise<string | undefined> {
  const little = await littleRoom(home, reserveBytes)
  if (!little) return undefined
  const { free, needed } = little
  return `${inMib(roughly(free, needed))} MiB are free on the disk of ${home}, and ${inMib(needed)} are kept in reserve: make room, or lower WINDLASS_AGENT_DISK_RESERVE_MB.`
}

/** File systems without a fixed number of inodes say 0. */
async function lookAtInodes(home: string): Promise<string | undefined> {
  const { files, ffree } = await statfs(home)
  if (files === 0 || ffree >= files * LEAST_INODES) return undefined
  return `${roughly(ffree, files * LEAST_INODES)} of ${files} inodes are free on the disk of ${home}: remove files, many small ones most likely.`
}

/** In tenths of what is needed: with each other word the check would be news, told to the log and to the coordinator. */
const roughly = (free: number, needed: number) => Math.floor(Math.floor((free / needed) * 10) * (needed / 10))

const inMib = (bytes: number) => Math.round(bytes / MIB)

/** Access alone does not say that there is room; whether there is, is asked beside. */
export function folderCheck(name: string, folder: string): Check {
  const look = async () => {
    try {
      await access(folder, constants.R_OK | constants.W_OK | constants.X_OK)
      return undefined
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException
      if (code === 'ENOENT') return `${folder} is gone: start the agent again, which makes it anew.`
      if (code === 'EROFS') return `${folder} lies on a disk that cannot be written: mount it for writing.`
      return `${folder} cannot be used (${code}): give it back to the user of the agent.`
    }
  }
  return { name, freshMs: FRESH_MS, look }
}
