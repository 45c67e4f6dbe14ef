import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'

/** A disk of this size, or nothing where this user may not make one. */
export async function aSmallDisk(
  folder: string,
  bytes: number,
): Promise<{ folder: string; remove(): void } | undefined> {
  const disk = path.join(folder, 'disk')
  await mkdir(disk)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${bytes}`, 'tmpfs', disk], { stdio: 'ignore' })
  } catch {
    // Not root, or not allowed to in here.
    return undefined
  }
  return { folder: disk, remove: () => execFileSync('umount', ['-l', disk]) }
}
