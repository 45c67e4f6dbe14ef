import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { parse, printParseErrorCode } from 'jsonc-parser'
import type { ParseError } from 'jsonc-parser'
import { DESCRIPTOR_FILE } from '@windlass/shared/model/descriptor.ts'
import { Failure } from '../failure.ts'

/** What has to be known of a descriptor before it is sent; the service judges the rest of it. */
export interface Outline {
  slug: string
  entry: string
}

export async function readOutline(folder: string): Promise<Outline> {
  const text = await readText(folder)
  const errors: ParseError[] = []
  const descriptor = parse(text, errors, { allowTrailingComma: true }) as Partial<Record<string, unknown>> | undefined
  const [first] = errors
  if (first)
    throw refusal(`${DESCRIPTOR_FILE}:${locationText(text, first.offset)}: ${printParseErrorCode(first.error)}.`)
  const { slug, entry = 'index.ts' } = descriptor ?? {}
  if (typeof slug !== 'string' || slug === '') throw refusal(`${DESCRIPTOR_FILE} has no \`slug\`.`)
  if (typeof entry !== 'string') throw refusal(`${DESCRIPTOR_FILE}: \`entry\` must be the path of a file.`)
  return { slug, entry: path.posix.normalize(entry) }
}

async function readText(folder: string): Promise<string> {
  try {
    return (await readFile(path.join(folder, DESCRIPTOR_FILE), 'utf8')).replace(/^\uFEFF/, '')
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ENOENT' || code === 'ENOTDIR') throw missing(folder)
    throw error
  }
}

function missing(folder: string): Failure {
  return new Failure(
    `There is no ${DESCRIPTOR_FILE} in ${folder}.`,
    `windlass deploy path/to/workflow, or make a ${DESCRIPTOR_FILE} with { "slug": "my-workflow" } ` +
      'beside an index.ts that exports `run`',
  )
}

function refusal(message: string): Failure {
  return new Failure(message, `mend ${DESCRIPTOR_FILE}; the least it holds is { "slug": "my-workflow" }`)
}

function locationText(text: string, offset: number): string {
  const lines = text.slice(0, offset).split('\n')
  return `${lines.length}:${(lines.at(-1)?.length ?? 0) + 1}`
}
