import { accessSync, constants } from 'node:fs'
import path from 'node:path'

export interface Tool {
  file: string
  /** Older ones lack some options. */
  can: (option: string) => boolean
}

/** Where distributions put what belongs to the system; a PATH could lead elsewhere. */
const FOLDERS = ['/usr/bin', '/bin', '/usr/sbin', '/sbin', '/usr/local/bin', '/run/current-system/sw/bin']

export function toolPath(name: string): string | undefined {
  return FOLDERS.map((folder) => path.join(folder, name)).find(isExecutable)
}

export function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK)
    return true
  } catch {
    return false
  }
}
