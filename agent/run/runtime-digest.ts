import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import path from 'node:path'

/** What `build-runtime.ts` makes of the program's side. */
export const BUILT = ['engine.cjs', 'host.cjs', 'windlass.mjs']
/** Lies beside them and says the digest of what they hold. */
export const DIGEST_FILE = 'digest'

export async function hashOf(folder: string, files: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const file of files) hash.update(`${file}\0`).update(await readFile(path.join(folder, file)))
  return hash.digest('hex')
}
