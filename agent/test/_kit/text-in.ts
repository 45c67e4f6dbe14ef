import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

/** All that stands in the files of a folder. */
export function textIn(folder: string): string {
  const files = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile())
  return files.map(({ name }) => readFileSync(path.join(folder, name), 'utf8')).join('')
}
