import { pause } from '@windlass/shared/time.ts'
import { isAlive } from './process-id.ts'
import type { ProcessMark } from './process-id.ts'
import type { Exit } from './process.ts'

const LOOK_MS = 50

/** Resolves when a process is gone that another one started: only its parent is told, and how it ended nobody else hears. */
export async function goneFrom(mark: ProcessMark): Promise<Exit> {
  while (isAlive(mark)) await pause(LOOK_MS)
  return { exitCode: null, signal: null }
}
