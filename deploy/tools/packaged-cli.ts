import { execFile } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { promisify } from 'node:util'
import { SdkPackages } from '@windlass/shared/model/sdk-packages.ts'
import { PROJECT } from './source-files.ts'

const run = promisify(execFile)

const BUILD = path.join(PROJECT, 'coordinator/downloads/build-packages.ts')
/** It takes about a second and a half of a processor. */
const BUILD_MS = 120_000

/**
 * Unpacks the CLI into a new folder as the service hands it out. Answers the file that is started. As one bundle it
 * takes half of the processor time that the sources take to start.
 */
export async function packagedCli(folder: string): Promise<string> {
  await mkdir(folder)
  const quiet = ['--disable-warning=ExperimentalWarning']
  const { stdout } = await run(process.execPath, [...quiet, BUILD, folder], { timeout: BUILD_MS })
  const { files } = SdkPackages.parse(JSON.parse(stdout))
  await run('tar', ['xzf', files['windlass-cli']], { cwd: folder })
  return path.join(folder, 'package/bin/windlass.mjs')
}
