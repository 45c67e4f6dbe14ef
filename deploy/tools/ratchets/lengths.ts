import { readFileSync } from 'node:fs'
import path from 'node:path'
import { NOT_OURS } from '../import-rules.ts'
import { sourceFiles } from '../source-files.ts'
import type { Offender } from './list.ts'

const MAX_LINES = 300
/** More than 120 columns. An emoji is one. */
const LONG = /^.{121}/u

/** All that people write, but for Markdown, which is read as pages, and JSON, whose strings cannot be broken. */
const ENDINGS = [
  '.ts',
  '.mts',
  '.cts',
  '.js',
  '.mjs',
  '.cjs',
  '.sql',
  '.sh',
  '.html',
  '.css',
  '.yaml',
  '.yml',
  '.service',
]
/** Written by deploy/tools/sdk-types.ts. */
const GENERATED = /^sdk\/types\//
const SCRIPTS = ['.ci/run', 'deploy/install/windlass', 'Dockerfile', '.dockerignore']

export interface Lengths {
  readonly files: readonly Offender[]
  readonly lines: readonly Offender[]
}

/** Files of more than 300 lines, and how many lines of more than 120 columns each file has. */
export function tooLong(root: string): Lengths {
  const names = sourceFiles(root, ...ENDINGS, ...SCRIPTS).filter(
    (file) => !NOT_OURS.test(file) && !GENERATED.test(file),
  )
  const counted = names.map((file) => ({ file, ...count(readFileSync(path.join(root, file), 'utf8')) }))
  return {
    files: counted.filter((c) => c.lines > MAX_LINES).map((c) => ({ file: c.file, size: c.lines })),
    lines: counted.filter((c) => c.long > 0).map((c) => ({ file: c.file, size: c.long })),
  }
}

function count(text: string): { lines: number; long: number } {
  const lines = text.replace(/\n$/, '').split('\n')
  return { lines: lines.length, long: lines.filter((line) => LONG.test(line)).length }
}
