import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { AgentRefusal, EXIT } from '../../exit-codes.ts'
import { launch } from '../../os/process.ts'
import { syncToDisk } from '../../write-privately.ts'
import { BUILT, DIGEST_FILE, hashOf } from '../runtime-digest.ts'

export interface RuntimeFiles {
  /** What a program's process starts with. */
  hostFile: string
  /** What a program gets for `import 'windlass'`. */
  sdkFile: string
}

/** The runtime that an installed agent has come with. */
interface Packed {
  folder: string
  /** Of its files, as they were when both were packed. */
  digest: string
}

/** Written in where the agent is packed; see `bundle-agent.ts`. */
declare const WINDLASS_RUNTIME_DIGEST: string | undefined

/** An agent that was installed has neither the sources of the runtime nor a bundler. */
const PACKED: Packed | undefined =
  typeof WINDLASS_RUNTIME_DIGEST === 'string'
    ? { folder: path.join(import.meta.dirname, 'runtime'), digest: WINDLASS_RUNTIME_DIGEST }
    : undefined

const NAME_DIGITS = 16
/** The folder of a runtime, or what is left of one whose making was cut off. */
const OF_A_RUNTIME = /^[0-9a-f]{16}(-.+)?$/

/**
 * The program's side as plain JavaScript: stripping types at each start would cost 40 ms. It lies in a folder of its
 * own in the state folder, where it stays as long as it is used. Programs load parts of it late, also those that another
 * agent has taken back, while an upgrade replaces the files of the agent. After a power cut a file may be empty under
 * its right name, so what stands there is compared with its digest.
 */
export async function prepareRuntime(folder: string, packed = PACKED): Promise<RuntimeFiles> {
  // What else the agent has ready for programs lies there in any case.
  await fs.mkdir(folder, { recursive: true })
  const home = packed ? await unpackInto(folder, packed) : await buildInto(folder)
  return { hostFile: path.join(home, 'host.cjs'), sdkFile: path.join(home, 'windlass.mjs') }
}

interface Others {
  /** The programs that are to be taken back. No others of this state folder are left. */
  found?: readonly { runtime?: string | undefined }[]
  log: (name: string, facts?: Record<string, unknown>) => void
}

/**
 * Removes the runtimes of other versions, and what was cut off. Programs that are taken back load parts of theirs late:
 * these stay, and where an agent of before has not written down which they are, all do until a later start.
 */
export async function removeOtherRuntimes({ hostFile }: RuntimeFiles, { found = [], log }: Others): Promise<void> {
  const own = path.dirname(hostFile)
  const used = [path.basename(own), ...found.map(({ runtime }) => runtime)]
  if (used.includes(undefined)) return
  const folder = path.dirname(own)
  try {
    for (const name of await fs.readdir(folder))
      if (OF_A_RUNTIME.test(name) && !used.includes(name))
        await fs.rm(path.join(folder, name), { recursive: true, force: true })
  } catch (error) {
    log('runtime.stayed', { error: String(error) })
  }
}

async function unpackInto(folder: string, packed: Packed): Promise<string> {
  const home = path.join(folder, packed.digest.slice(0, NAME_DIGITS))
  await makeUnlessThere(home, (draft) => unpack(packed, draft), packed.digest)
  return home
}

/** An upgrade may replace these files while the agent before it has yet to look at them. */
async function unpack({ folder, digest }: Packed, draft: string): Promise<void> {
  for (const file of [...BUILT, DIGEST_FILE])
    if (existsSync(path.join(folder, file))) await fs.copyFile(path.join(folder, file), path.join(draft, file))
  if (!(await isWhole(draft, digest))) throw new AgentRefusal(EXIT.internal, replacedText(folder))
}

const replacedText = (folder: string) =>
  `The runtime for programs in ${folder} did not come with this agent: another version was installed over it, ` +
  'or a file is damaged. Start the agent again; if that does not help, install it anew.'

/** Built when an agent of this version starts for the first time, and named after its sources. */
async function buildInto(folder: string): Promise<string> {
  const sdkEntry = fileURLToPath(import.meta.resolve('windlass'))
  const home = path.join(folder, await digestOf(path.dirname(sdkEntry)))
  await makeUnlessThere(home, (draft) => build(sdkEntry, draft))
  return home
}

async function digestOf(sdk: string): Promise<string> {
  const below = await fs.readdir(path.join(sdk, 'runtime'), { recursive: true })
  // package.json pins what goes into the bundles besides.
  const files = [
    'index.ts',
    'package.json',
    ...below.filter((name) => name.endsWith('.ts')).map((name) => path.join('runtime', name)),
  ]
  return (await hashOf(sdk, files.sort())).slice(0, NAME_DIGITS)
}

/** What cannot be read is made anew, and if that fails it says why. */
async function isWhole(home: string, digest?: string): Promise<boolean> {
  try {
    const found = await hashOf(home, BUILT)
    return found === (await fs.readFile(path.join(home, DIGEST_FILE), 'utf8')) && found === (digest ?? found)
  } catch {
    return false
  }
}

async function makeUnlessThere(home: string, make: (draft: string) => Promise<void>, digest?: string): Promise<void> {
  if (await isWhole(home, digest)) return
  const draft = await fs.mkdtemp(`${home}-`)
  const damaged = `${draft}-damaged`
  try {
    await make(draft)
    for (const file of [...BUILT, DIGEST_FILE]) await syncToDisk(path.join(draft, file))
    // All or nothing: another agent may be doing the same.
    if (existsSync(home) && !(await isWhole(home, digest))) await fs.rename(home, damaged)
    await fs.rename(draft, home)
    await syncToDisk(path.dirname(home))
  } catch (error) {
    if (!(await isWhole(home, digest))) throw error
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
