import { mkdirSync, symlinkSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Lets a home share what is made for download with the others of this test run: each would pack it for 6 s. */
export function shareDownloads(home: string): void {
  // Only then the folder of temporary files is this run's, and what lies there is of today's sources.
  if (process.env['WINDLASS_TEST_RUN'] === undefined) return
  for (const name of ['downloads', 'packages']) {
    const made = path.join(os.tmpdir(), name)
    mkdirSync(made, { recursive: true })
    symlinkSync(made, path.join(home, name))
  }
}
