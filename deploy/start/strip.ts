import { createHash } from 'node:crypto'
import { globSync } from 'node:fs'
import { mkdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

/** By the address of the source: where its stripped text lies, and how old the source was. */
type Index = Record<string, { file: string; mtimeMs: number }>

const rooms = dirname(dirname(dirname(fileURLToPath(import.meta.url))))

/**
 * Strips the types of all that the parts are made of, once, and answers the arguments that make a part use the result.
 * Lines and columns stay where they are, so that stacks are right.
 */
export async function stripTypes(home: string): Promise<string[]> {
  const folder = join(home, 'cache', 'stripped')
  await mkdir(folder, { recursive: true })
  const files = globSync('{agent,coordinator,shared,sdk/client}/**/*.ts', {
    cwd: rooms,
    exclude: (name) => name === 'node_modules' || name === 'test',
  })
  const index: Index = Object.fromEntries(await Promise.all(files.map((file) => strip(join(rooms, file), folder))))
  await write(join(folder, 'index.json'), JSON.stringify(index))
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

/** Another start may read it at the same moment. */
async function write(path: string, text: string): Promise<void> {
  const unfinished = `${path}.${process.pid}`
  await writeFile(unfinished, text)
  await rename(unfinished, path)
}
