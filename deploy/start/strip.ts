import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { markOf } from '@windlass/agent/os/process-id.ts'

/** By the address of the source: where its stripped text lies, and how old the source was. */
type Index = Record<string, { file: string; mtimeMs: number }>

const INDEX = 'index.json'
const rooms = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/** All that the parts of an installation are made of. */
export function partFiles(): string[] {
  const exclude = (name: string) => name === 'node_modules' || name === 'test'
  return globSync('{agent,coordinator,shared,sdk/client}/**/*.ts', { cwd: rooms, exclude })
}

/**
 * Strips the types of these files, named from the folder of the rooms, once, and answers the arguments that make a Node
 * use the result. Lines and columns stay where they are, so that stacks are right.
 */
export async function stripTypes(folder: string, files: readonly string[]): Promise<[flag: '--import', hook: string]> {
  await mkdir(folder, { recursive: true })
  const index: Index = Object.fromEntries(await Promise.all(files.map((file) => strip(join(rooms, file), folder))))
  await write(join(folder, INDEX), JSON.stringify(index))
  await removeOthers(folder, index)
  const hook = new URL('./stripped.mjs', import.meta.url)
  hook.searchParams.set('folder', folder)
  return ['--import', hook.href]
}

async function strip(path: string, folder: string): Promise<[string, Index[string]]> {
  const source = await readFile(path, 'utf8')
  const file = `${createHash('sha256').update(process.version).update(source).digest('hex').slice(0, 32)}.mjs`
  const { mtimeMs } = await stat(path)
  const stripped = join(folder, file)
  if (!(await stat(stripped).catch(() => undefined))) await write(stripped, stripTypeScriptTypes(source))
  return [pathToFileURL(path).href, { file, mtimeMs }]
}

/** What no source stands for any more, and what a start that was killed has left half written. */
async function removeOthers(folder: string, index: Index): Promise<void> {
  const named = new Set([INDEX, ...Object.values(index).map(({ file }) => file)])
  const others = (await readdir(folder)).filter((name) => !named.has(name) && !isBeingWritten(name))
  await Promise.all(others.map((name) => rm(join(folder, name), { recursive: true, force: true })))
}

function isBeingWritten(name: string): boolean {
  const pid = /\.(\d+)$/.exec(name)?.[1]
  return pid !== undefined && markOf(Number(pid)) !== undefined
}

/** Two sources with the same text have one file. */
let drafts = 0

/** Another start may read it at the same moment. */
async function write(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${++drafts}.${process.pid}`
  await writeFile(unfinished, text)
  await rename(unfinished, path)
}
