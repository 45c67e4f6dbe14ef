import { readFile } from 'node:fs/promises'
import { Failure } from './failure.ts'
import { hiddenPrompt } from './hidden-prompt.ts'
import { standardInput } from './json-argument.ts'

/**
 * A value that must not stand in the history of a shell: a hidden prompt on a terminal, else standard input without the
 * line break that `echo` and editors put at its end.
 */
export async function secretText(label: string): Promise<string> {
  if (process.stdin.isTTY) return hiddenPrompt(label)
  return utf8(await standardInput(label), 'standard input').replace(/\r?\n$/, '')
}

/** All of a file as it is, its last line break included. */
export async function secretFile(file: string): Promise<string> {
  const bytes = await readFile(file).catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    throw new Failure(`--file: cannot read ${file}: ${why}.`, '--file path/to/file, relative to this folder')
  })
  return utf8(bytes, file)
}

function utf8(bytes: Buffer, from: string): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch {
    throw new Failure(`${from} is not UTF-8 text.`, 'encode it first, for instance: base64 -w0 file | windlass …')
  }
}
