import { lstat, readdir, readFile, realpath, stat } from 'node:fs/promises'
import type { Dirent } from 'node:fs'
import path from 'node:path'
import { MOST_BUNDLE_BYTES, type SourceFile } from '@windlass/shared/model/workflow.ts'
import { Failure } from '../failure.ts'

export interface Collected {
  files: SourceFile[]
  warnings: string[]
}

// No service takes more, and each says its own limit; it is noticed here before a whole home folder has been read.
const MAX_FILES = 2_000
const MAX_ENTRIES = 20_000

/** Built, installed or found again elsewhere: none of it is source. Names that begin with a dot are left out too. */
const NOT_SOURCE = new Set([
  'node_modules',
  'dist',
  'coverage',
  'package-lock.json',
  'npm-shrinkwrap.json',
  'yarn.lock',
  'pnpm-lock.yaml',
])

/** Whether a file or folder of this name stays at home. */
export function isIgnored(name: string): boolean {
  return name.startsWith('.') || NOT_SOURCE.has(name)
}

interface Walk extends Collected {
  root: string
  /** Files of ignored names that belong to the program. */
  extra: ReadonlySet<string>
  bytes: number
  entries: number
}

/**
 * The text files of a workflow's folder, sorted by path. What an ignored name hides can be added by `imported`, paths
 * as the bundler has them.
 */
export async function collectFiles(folder: string, imported: readonly string[] = []): Promise<Collected> {
  const root = await realpath(folder)
  const extra = new Set(await Promise.all(imported.map((source) => fileOf(root, source))))
  const walk: Walk = { root, extra, files: [], warnings: [], bytes: 0, entries: 0 }
  await walkFolder(walk, '')
  const have = new Set(walk.files.map((file) => file.path))
  for (const missing of extra) if (!have.has(missing)) await addFile(walk, missing)
  const files = walk.files.sort((a, b) => (a.path < b.path ? -1 : 1))
  return { files, warnings: walk.warnings }
}

/** `./a.ts?x=1` imports the file `a.ts`, unless one is there that is called so. */
async function fileOf(root: string, source: string): Promise<string> {
  return (await isThere(path.join(root, source))) ? source : source.replace(/[?#].*$/s, '')
}

async function isThere(file: string): Promise<boolean> {
  return lstat(file).then(
    () => true,
    () => false,
  )
}

async function walkFolder(walk: Walk, relative: string): Promise<void> {
  const entries = await readdir(path.join(walk.root, relative), { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    if (isIgnored(entry.name)) continue
    if (++walk.entries > MAX_ENTRIES) throw tooMuch(`${walk.root} holds more than ${MAX_ENTRIES} files and folders.`)
    await addEntry(walk, entry, relative === '' ? entry.name : `${relative}/${entry.name}`)
  }
}

async function addEntry(walk: Walk, entry: Dirent, relative: string): Promise<void> {
  // Node puts this character for bytes of a name that are not UTF-8, and does not find the file by it.
  if (entry.name.includes('\uFFFD') && !(await isThere(path.join(walk.root, relative))))
    return void walk.warnings.push(`${relative} has a name that is not UTF-8, and was left out`)
  if (entry.isDirectory()) return walkFolder(walk, relative)
  if (entry.isSymbolicLink() && !(await isFileInside(walk, relative))) return
  if (entry.isFile() || entry.isSymbolicLink()) await addFile(walk, relative)
}

/**
 * A link may point to a file of the same folder; to anything outside it is refused, as the file would not travel along.
 * What stays at home by its own name does so by that of a link too.
 */
async function isFileInside(walk: Walk, relative: string): Promise<boolean> {
  const target = await realpath(path.join(walk.root, relative)).catch((cause: unknown) => {
    throw linkFailure(
      relative,
      `is a link that leads nowhere (${cause instanceof Error ? cause.message : String(cause)})`,
    )
  })
  if (target !== walk.root && !target.startsWith(walk.root + path.sep))
    throw linkFailure(relative, `is a link out of the folder, to ${target}`)
  const real = path.relative(walk.root, target).split(path.sep).join('/')
  const isFile = (await stat(target)).isFile()
  if (isFile && (walk.extra.has(real) || !real.split('/').some(isIgnored))) return true
  walk.warnings.push(`${relative} is a link to ${isFile ? real : 'a folder'} and was left out`)
  return false
}

async function addFile(walk: Walk, relative: string): Promise<void> {
  const file = path.join(walk.root, relative)
  walk.bytes += (await stat(file)).size
  if (walk.bytes > MOST_BUNDLE_BYTES)
    throw tooMuch(`With ${relative} the files are more than ${MOST_BUNDLE_BYTES / 1024 / 1024} MiB.`)
  if (walk.files.length >= MAX_FILES) throw tooMuch(`${walk.root} holds more than ${MAX_FILES} files.`)
  const content = textOf(await readFile(file))
  if (content === undefined) walk.warnings.push(`${relative} is not UTF-8 text and was left out`)
  else walk.files.push({ path: relative, content })
}

function textOf(bytes: Buffer): string | undefined {
  if (bytes.includes(0)) return undefined
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (error) {
    if (error instanceof TypeError) return undefined
    throw error
  }
}

function tooMuch(message: string): Failure {
  return new Failure(message, 'name the folder of the workflow alone: windlass deploy path/to/workflow')
}

function linkFailure(relative: string, what: string): Failure {
  return new Failure(`${relative} ${what}.`, `replace it by the file itself, or move it out of the folder`)
}
