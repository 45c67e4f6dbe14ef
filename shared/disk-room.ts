import { statfs } from 'node:fs/promises'

const RESERVE_BYTES = 512 * 1024 * 1024

/** Bytes, where less is free than is kept in reserve. */
export interface LittleRoom {
  free: number
  needed: number
}

/**
 * Looks at the disk on which the folder lies. `reserveBytes` is 512 MiB by default, and at most a tenth of the disk.
 * Resolves with undefined where there is enough.
 */
export async function littleRoom(folder: string, reserveBytes?: number): Promise<LittleRoom | undefined> {
  const { bsize, blocks, bavail } = await statfs(folder)
  const needed = reserveBytes ?? Math.min(RESERVE_BYTES, (blocks * bsize) / 10)
  const free = bavail * bsize
  return free >= needed ? undefined : { free, needed }
}
