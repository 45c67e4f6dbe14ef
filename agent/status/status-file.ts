import { renameSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { STATUS_FILE } from './status.ts'
import type { AgentStatus } from './status.ts'

/** Replaced as a whole: whoever reads it finds all of it, and nothing but the user of the agent reads it. */
export function openStatusFile(home: string, log: Log): { write(status: AgentStatus): void } {
  const file = path.join(home, STATUS_FILE)
  let isBroken = false
  return {
    write(status) {
      try {
        writeFileSync(`${file}.new`, `${JSON.stringify(status, undefined, 2)}\n`, { mode: 0o600 })
        renameSync(`${file}.new`, file)
        isBroken = false
        probe('status.written', { state: status.state })
      } catch (error) {
        // It is for looking at: a disk that is full must not end what works.
        if (!isBroken) log.warn('status.unwritten', { file, error })
        isBroken = true
      }
    },
  }
}
