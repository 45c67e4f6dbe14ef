// node deploy/tools/package-agent.ts <folder>: the archives of the agent for this platform, as the coordinator makes them for itself.
// On a machine of another platform it makes those that belong into the coordinator's folder WINDLASS_DOWNLOADS.
import { copyFileSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buildDownloads } from '@windlass/coordinator/downloads/build.ts'
import { SUMS } from '@windlass/coordinator/downloads/sums.ts'

const [folder] = process.argv.slice(2)
if (!folder) throw new Error('usage: package-agent.ts <folder>')

const work = mkdtempSync(join(tmpdir(), 'windlass-package-'))
try {
  const made = join(work, await buildDownloads(work))
  for (const name of readdirSync(made).filter((each) => each !== SUMS)) {
    copyFileSync(join(made, name), join(folder, name))
    console.log(join(folder, name))
  }
} finally {
  rmSync(work, { recursive: true })
}
