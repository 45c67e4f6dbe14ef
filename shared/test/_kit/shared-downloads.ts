import { mkdirSync, symlinkSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Lets a home share the archives of the agent with the others of this test run: each would pack them for 4 s. */
export function shareDownloads(home: string): void {
  // Only then the folder of temporary files is this run's, and what lies there is of today's sources.
  if (process.env['WINDLASS_TEST_RUN'] === undefined) return
  const made = path.join(os.tmpdir(), 'downloads')
  mkdirSync(made, { recursive: true })
  symlinkSync(made, path.join(home, 'downloads'))
}
