import { readdir, readFile } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'

/** `{ 'index.ts': '…' }` as the files of a deploy. */
export function filesOf(contents: Record<string, string>): SourceFile[] {
  return Object.entries(contents).map(([path, content]) => ({ path, content }))
}

/** All files below a folder. */
export async function filesIn(folder: string): Promise<SourceFile[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name))
  return Promise.all(
    paths.map(async (path) => ({
      path: relative(folder, path).split(sep).join('/'),
      content: await readFile(path, 'utf8'),
    })),
  )
}
