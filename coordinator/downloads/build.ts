import { createHash } from 'node:crypto'
import { createReadStream, existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import manifest from '../package.json' with { type: 'json' }
import { type Entry, writeArchive } from './archive.ts'
import { bundleAgent } from './bundle-agent.ts'
import { PARTS } from './parts.ts'
import { isWhole, SUMS, sumsText } from './sums.ts'

// node build.ts <folder> [node]: makes the archives of the agent of this version, for the platform and with the Node of
// this process, or with another, in a folder named after what is in them, and prints its name. What is there already is
// not made again.

const PLATFORM = `${process.platform}-${process.arch}`
const NAME = `windlass-agent-${manifest.version}`
/** Another coordinator may still hand out what an earlier version of it has made. */
const SERVED_MS = 7 * 24 * 3_600_000
/** What is older and not finished was cut short. */
const DRAFT_MS = 3_600_000
const FINISHED = /^[0-9a-f]{16}$/

const NPM_MANIFEST = {
  name: 'windlass-agent',
  version: manifest.version,
  description: 'The Windlass agent: makes this machine execute runs.',
  license: 'UNLICENSED',
  type: 'module',
  bin: { windlass: 'bin/windlass.mjs' },
  engines: { node: '>=22.18' },
}

/** Answers the name of the folder. */
export async function buildDownloads(home: string, node = process.execPath): Promise<string> {
  await mkdir(home, { recursive: true })
  const work = await mkdtemp(join(home, 'work-'))
  try {
    const { shared, own, npm } = await entries(work, node)
    const name = await digestOf([...shared, ...own, ...npm])
    const folder = join(home, name)
    if (await isWhole(folder)) await utimes(folder, new Date(), new Date())
    else await make(folder, { own: [...shared, ...own], npm: [...shared, ...npm] })
    await removeOld(home, name)
    return name
  } finally {
    await rm(work, { recursive: true, force: true })
  }
}

async function entries(work: string, node: string): Promise<Record<'shared' | 'own' | 'npm', Entry[]>> {
  const { files } = await bundleAgent(work)
  const shared: Entry[] = [...files].map(([path, content]) => ({ path, content }))
  shared.push({ path: 'VERSION', content: `${manifest.version}\n` })
  const part = async (path: string, file: string, isProgram = false): Promise<Entry> => {
    return { path, content: await readFile(file, 'utf8'), isProgram }
  }
  shared.push(
    await part('bin/windlass', PARTS.command, true),
    await part('uninstall.sh', PARTS.uninstall, true),
    await part('release-cgroup.sh', PARTS.releaseCgroup, true),
    await part('systemd/windlass-agent.service', PARTS.unit),
    await part('systemd/windlass-agent.user.service', PARTS.userUnit),
  )
  const npm: Entry[] = [
    { path: 'package.json', content: `${JSON.stringify(NPM_MANIFEST, null, 2)}\n` },
    await part('bin/windlass.mjs', PARTS.npmCommand, true),
  ]
  // A Node whose larger part lies in a library of the system runs nowhere else.
  const { node_shared: isShared } = process.config.variables as { node_shared?: boolean }
  if (isShared) return { shared, npm, own: [] }
  const own: Entry[] = [{ path: 'bin/node', content: { file: node }, isProgram: true }]
  const licence = join(dirname(dirname(node)), 'LICENSE')
  if (existsSync(licence)) own.push(await part('LICENCE-node.txt', licence))
  return { shared, own, npm }
}

async function make(folder: string, { own, npm }: Record<'own' | 'npm', Entry[]>): Promise<void> {
  const draft = await mkdtemp(`${folder}-`)
  try {
    const sums = new Map<string, string>()
    const add = async (name: string, inside: string, all: Entry[]) =>
      sums.set(name, await writeArchive(join(draft, name), inside, all))
    await add(`${NAME}.tgz`, 'package', npm)
    if (own.some(({ path }) => path === 'bin/node')) await add(`${NAME}-${PLATFORM}.tar.gz`, `${NAME}-${PLATFORM}`, own)
    await writeFile(join(draft, SUMS), sumsText(sums))
    // Something that tidies up may have taken a part of it.
    if (!(await isWhole(folder))) await rm(folder, { recursive: true, force: true })
    // All or nothing: another coordinator may be doing the same in the same home.
    await rename(draft, folder)
  } catch (error) {
    if (!(await isWhole(folder))) throw error
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

async function digestOf(all: readonly Entry[]): Promise<string> {
  const hash = createHash('sha256').update(PLATFORM)
  for (const { path, content } of all) {
    hash.update(`\0${path}\0`)
    if (typeof content === 'string') hash.update(content)
    else await pipeline(createReadStream(content.file), hash, { end: false })
  }
  return hash.digest('hex').slice(0, 16)
}

async function removeOld(home: string, current: string): Promise<void> {
  for (const name of await readdir(home)) {
    const folder = join(home, name)
    // Another coordinator may have tidied up at the same moment.
    const { mtimeMs } = await stat(folder).catch(() => ({ mtimeMs: Date.now() }))
    const servedMs = FINISHED.test(name) ? SERVED_MS : DRAFT_MS
    if (name !== current && Date.now() - mtimeMs > servedMs) await rm(folder, { recursive: true, force: true })
  }
}

if (process.argv[1] === import.meta.filename) {
  const [home, node] = process.argv.slice(2)
  if (!home) throw new Error('usage: build.ts <folder> [node]')
  process.stdout.write(`${await buildDownloads(home, node)}\n`)
}
