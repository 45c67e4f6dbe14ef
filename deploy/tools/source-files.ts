import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'

/** The folder that holds the five rooms. */
export const PROJECT = path.resolve(import.meta.dirname, '../..')

/**
 * Paths of the project's files with one of these endings, `/`-separated and sorted: what git tracks and what it would track,
 * so that a file counts from the moment it is written.
 */
export function sourceFiles(root: string, ...endings: string[]): string[] {
  const listed = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
    timeout: 20_000,
  })
  const files = new Set(listed.split('\0').filter((file) => endings.some((ending) => file.endsWith(ending))))
  // Git goes on listing a file that was deleted and not yet staged.
  return [...files].filter((file) => existsSync(path.join(root, file))).sort()
}
