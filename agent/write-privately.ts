import { open, rename } from 'node:fs/promises'
import path from 'node:path'

/**
 * Puts a file in the place of another, whole or not at all, for nobody else to read. When this returns it survives a power cut: the
 * content is synced before it gets its name, and the name before anybody relies on it.
 */
export async function writePrivately(file: string, text: string): Promise<void> {
  const draft = `${file}.new`
  const handle = await open(draft, 'w', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
  await rename(draft, file)
  await syncToDisk(path.dirname(file))
}

/** A folder too, so that the names in it survive a power cut. */
export async function syncToDisk(file: string): Promise<void> {
  const handle = await open(file, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
