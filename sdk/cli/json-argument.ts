import { readFile } from 'node:fs/promises'
import { Failure } from './failure.ts'

// A run takes 1 MiB of input by default; what is much larger is the wrong file.
const MAX_BYTES = 64 * 1024 * 1024

/** The value of an argument that holds JSON: the text itself, `@file`, or `-` for standard input. */
export async function jsonArgument(flag: string, given: string): Promise<unknown> {
  const { text, from } = await textOf(flag, given)
  try {
    return JSON.parse(text)
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Failure(
      `${flag}: ${from} is not JSON: ${why}.`,
      `${flag} '{"name":"Ada"}', ${flag} @input.json, or ${flag} - for standard input`,
    )
  }
}

/** The text itself, that of `@file`, or of standard input for `-`. */
export async function textOf(flag: string, given: string): Promise<{ text: string; from: string }> {
  if (given === '-') return { text: (await standardInput(flag)).toString('utf8'), from: 'standard input' }
  if (!given.startsWith('@')) return { text: given, from: 'the value' }
  const file = given.slice(1)
  try {
    return { text: (await readFile(file, 'utf8')).replace(/^\uFEFF/, ''), from: file }
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error)
    throw new Failure(`${flag}: cannot read ${file}: ${why}.`, `${flag} @path/to/input.json, relative to this folder`)
  }
}

/** All of standard input. */
export async function standardInput(flag: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of process.stdin) {
    bytes += (chunk as Buffer).length
    if (bytes > MAX_BYTES) throw new Failure(`${flag}: standard input is larger than 64 MiB.`, `${flag} @input.json`)
    chunks.push(chunk as Buffer)
  }
  return Buffer.concat(chunks)
}
