import fs from 'node:fs/promises'

/** A program may leave a million files: their names are not read at once, and other work has its turns in between. */
const AT_ONCE = 64

interface Bounds {
  /** Of more entries the first ones are taken. */
  most?: number
  atOnce?: number
  /** Ends it in the midst of the folder. */
  signal?: AbortSignal | undefined
}

/**
 * Does something with each entry of a folder, some at a time. Answers with how many. Rejects with the first failure
 * when all the others have been tried.
 */
export async function eachEntry(
  folder: string | Buffer,
  act: (entry: Buffer) => Promise<unknown>,
  { most = Infinity, atOnce = AT_ONCE, signal }: Bounds = {},
): Promise<number> {
  // Names need not be text. The types know no such encoding here; Node takes it.
  const entries = await fs.opendir(folder, { encoding: 'buffer' as BufferEncoding, bufferSize: AT_ONCE })
  const prefix = Buffer.concat([typeof folder === 'string' ? Buffer.from(folder) : folder, Buffer.from('/')])
  const failures: unknown[] = []
  // Caught at once: while the folder is being read nobody waits for them, and a rejection would end the process.
  const tried = (entry: Buffer) => act(entry).catch((error: unknown) => void failures.push(error))
  let count = 0
  let pending: Promise<unknown>[] = []
  try {
    for await (const { name } of entries) {
      if (count === most || signal?.aborted) break
      count += 1
      pending.push(tried(Buffer.concat([prefix, name as unknown as Buffer])))
      if (pending.length < atOnce) continue
      await Promise.all(pending)
      pending = []
    }
  } finally {
    await Promise.all(pending)
  }
  if (failures.length > 0) throw failures[0]
  return count
}
