import { createHash } from 'node:crypto'
import { gzipSync } from 'node:zlib'
import { pack } from 'tar-stream'

export interface Packed {
  digest: string
  bytes: number
  packed: Buffer
}

/** A bundle as the coordinator makes them. */
export async function aBundle(files: Record<string, string>): Promise<Packed> {
  const tar = pack()
  for (const [name, text] of Object.entries(files)) tar.entry({ name }, text)
  tar.finalize()
  const chunks: Uint8Array[] = []
  for await (const chunk of tar as AsyncIterable<Uint8Array>) chunks.push(chunk)
  return packed(gzipSync(Buffer.concat(chunks)))
}

/** A bundle whose program is this one function body: `return input`, `phase('x')`. */
export function aProgram(body: string): Promise<Packed> {
  const text = `import { phase, log, context } from 'windlass'\nexport async function run(input, given) {\n${body}\n}\nvoid [phase, log, context]\n`
  return aBundle({ 'main.mjs': text })
}

export function packed(bytes: Buffer): Packed {
  return { digest: createHash('sha256').update(bytes).digest('hex'), bytes: bytes.length, packed: bytes }
}
