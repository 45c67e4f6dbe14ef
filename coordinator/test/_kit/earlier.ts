import { copyFile, mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const MIGRATIONS = join(import.meta.dirname, '../../db/migrations')

/** The migrations of the product as it was before this one. */
export async function folderBefore(file: string): Promise<{ folder: string; remove: () => Promise<void> }> {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-migrations-'))
  const earlier = (await readdir(MIGRATIONS)).filter((name) => name < file)
  await Promise.all(earlier.map((name) => copyFile(join(MIGRATIONS, name), join(folder, name))))
  return { folder, remove: () => rm(folder, { recursive: true }) }
}
