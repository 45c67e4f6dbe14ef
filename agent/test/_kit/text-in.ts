import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** All that stands in the files of a folder. An agent may be writing there: what is gone meanwhile counts as empty. */
export function textIn(folder: string): string {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map(({ name }) => textOf(path.join(folder, name))).join('')
}

function textOf(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return ''
    throw error
  }
}
