import { createHash } from 'node:crypto'
import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { launch } from '../../os/process.ts'
import { syncToDisk, writePrivately } from '../../write-privately.ts'

export interface RuntimeFiles {
  /** What a program's process starts with. */
  hostFile: string
  /** What a program gets for `import 'windlass'`. */
  sdkFile: string
}

/** Where an agent that was installed finds them: it has neither their sources nor a bundler. */
const PREBUILT = path.join(import.meta.dirname, 'runtime')

/** What `build-runtime.ts` writes. */
const BUILT = ['engine.cjs', 'host.cjs', 'windlass.mjs']
/** Lies beside them and says their digest. */
const DIGEST_FILE = 'digest'

/**
 * The program's side as plain JavaScript: stripping types at each start would cost 40 ms. Built when an agent of this version
 * starts for the first time, and kept in a folder named after its sources. After a power cut a file may be empty under
 * its right name, so what stands there is compared with its digest.
 */
export async function prepareRuntime(folder: string): Promise<RuntimeFiles> {
  // What else the agent has ready for programs lies there in any case.
  await fs.mkdir(folder, { recursive: true })
  if (existsSync(path.join(PREBUILT, 'host.cjs'))) return filesIn(PREBUILT)
  const sdkEntry = fileURLToPath(import.meta.resolve('windlass'))
  const home = path.join(folder, await digestOf(path.dirname(sdkEntry)))
  if (!(await isWhole(home))) await buildInto(home, sdkEntry)
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
  return (await hashOf(sdk, files.sort())).slice(0, 16)
}

async function hashOf(folder: string, files: string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(await fs.readFile(path.join(folder, file)))
  return hash.digest('hex')
}

/** What cannot be read is built anew, and if that fails it says why. */
async function isWhole(home: string): Promise<boolean> {
  try {
    return (await fs.readFile(path.join(home, DIGEST_FILE), 'utf8')) === (await hashOf(home, BUILT))
  } catch {
    return false
  }
}

async function buildInto(home: string, sdkEntry: string): Promise<void> {
  await fs.mkdir(path.dirname(home), { recursive: true })
  const draft = await fs.mkdtemp(`${home}-`)
  const damaged = `${draft}-damaged`
  try {
    await build(sdkEntry, draft)
    for (const file of BUILT) await syncToDisk(path.join(draft, file))
    await writePrivately(path.join(draft, DIGEST_FILE), await hashOf(draft, BUILT))
    // All or nothing: another agent may be doing the same.
    if (existsSync(home) && !(await isWhole(home))) await fs.rename(home, damaged)
    await fs.rename(draft, home)
    await syncToDisk(path.dirname(home))
  } catch (error) {
    if (!(await isWhole(home))) throw error
  } finally {
    for (const each of [draft, damaged]) await fs.rm(each, { recursive: true, force: true })
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
