import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { launch } from '../../os/process.ts'

export interface RuntimeFiles {
  /** What a program's process starts with. */
  hostFile: string
  /** What a program gets for `import 'windlass'`. */
  sdkFile: string
}

/** Where an agent that was installed finds them: it has neither their sources nor a bundler. */
const PREBUILT = path.join(import.meta.dirname, 'runtime')

/**
 * The program's side as plain JavaScript: stripping types at each start would cost 40 ms. Built when an agent of this version
 * starts for the first time, and kept in a folder named after its sources.
 */
export async function prepareRuntime(folder: string): Promise<RuntimeFiles> {
  // What else the agent has ready for programs lies there in any case.
  await fs.mkdir(folder, { recursive: true })
  if (existsSync(path.join(PREBUILT, 'host.cjs'))) return filesIn(PREBUILT)
  const sdkEntry = fileURLToPath(import.meta.resolve('windlass'))
  const home = path.join(folder, await digestOf(path.dirname(sdkEntry)))
  if (!existsSync(home)) await buildInto(home, sdkEntry)
  return filesIn(home)
}

function filesIn(home: string): RuntimeFiles {
  return { hostFile: path.join(home, 'host.cjs'), sdkFile: path.join(home, 'windlass.mjs') }
}

async function digestOf(sdk: string): Promise<string> {
  const below = await fs.readdir(path.join(sdk, 'runtime'), { recursive: true })
  // package.json pins what goes into the bundles besides.
  const files = [
    'index.ts',
    'package.json',
    ...below.filter((name) => name.endsWith('.ts')).map((name) => path.join('runtime', name)),
  ]
  const hash = createHash('sha256')
  for (const file of files.sort()) hash.update(`${file}\0`).update(await fs.readFile(path.join(sdk, file)))
  return hash.digest('hex').slice(0, 16)
}

async function buildInto(home: string, sdkEntry: string): Promise<void> {
  await fs.mkdir(path.dirname(home), { recursive: true })
  const draft = await fs.mkdtemp(`${home}-`)
  try {
    await build(sdkEntry, draft)
    // All or nothing: another agent may be doing the same.
    await fs.rename(draft, home)
  } catch (error) {
    if (!existsSync(home)) throw error
  } finally {
    await fs.rm(draft, { recursive: true, force: true })
  }
}

/** In a process of its own: the bundler's memory and its service are gone with it. */
async function build(sdkEntry: string, folder: string): Promise<void> {
  const script = path.join(import.meta.dirname, '../build-runtime.ts')
  const args = [script, sdkEntry, folder]
  const child = launch({ file: process.execPath, args, cwd: folder, env: {}, morePipes: 0, stdin: 'ignore' })
  child.stdout.resume()
  const [said, exit] = await Promise.all([text(child.stderr), child.exited])
  if ('failed' in exit) throw new Error(`The runtime for programs could not be built: ${exit.failed}`)
  if (exit.exitCode !== 0) throw new Error(`The runtime for programs could not be built: ${said.trim()}`)
}
