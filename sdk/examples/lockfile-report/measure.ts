// Prints the input for a report with sizes:  node measure.ts path/to/project | windlass run lockfile-report --input -
import { lstat, readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { parseLockfile } from './parse.ts'
import type { Input } from './types.ts'

/** The lockfile of a project folder and the installed bytes of each of its packages. */
export async function measure(folder: string): Promise<Input> {
  const lockfile = await readFile(path.join(folder, 'package-lock.json'), 'utf8')
  const sizes: Record<string, number> = {}
  for (const { path: folderPath } of parseLockfile(lockfile).packages) {
    const bytes = await bytesBelow(path.join(folder, folderPath))
    if (bytes !== undefined) sizes[folderPath] = bytes
  }
  return { lockfile, sizes }
}

/** Bytes of all files of a package, without the packages installed inside it; undefined when it is not installed. */
async function bytesBelow(folder: string): Promise<number | undefined> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!entries) return undefined
  let bytes = 0
  for (const entry of entries) {
    if (entry.name === 'node_modules') continue
    const full = path.join(folder, entry.name)
    // Links are counted as the few bytes they are.
    bytes += entry.isDirectory() ? ((await bytesBelow(full)) ?? 0) : (await lstat(full)).size
  }
  return bytes
}

if (process.argv[1] === import.meta.filename) console.log(JSON.stringify(await measure(process.argv[2] ?? '.')))
