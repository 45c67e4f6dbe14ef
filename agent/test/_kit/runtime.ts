import { cp } from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { prepareRuntime } from '../../run/hosts/runtime-files.ts'

/**
 * Gives an agent's home the runtime for programs: built by the first agent of a test run, 0.3 s of a core, and not by
 * each of some 240.
 */
export async function giveRuntime(home: string): Promise<void> {
  // Only then the folder of temporary files is this run's, and what lies there is of today's sources.
  if (process.env['WINDLASS_TEST_RUN'] === undefined) return
  const { hostFile } = await prepareRuntime(path.join(os.tmpdir(), 'runtime'))
  const built = path.dirname(hostFile)
  await cp(built, path.join(home, 'runtime', path.basename(built)), { recursive: true })
}
