import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { PROJECT, sourceFiles } from '../../tools/source-files.ts'

export interface OurNames {
  tables: readonly string[]
  columns: readonly string[]
  files: readonly string[]
  frames: readonly string[]
}

/**
 * What a rebuild may call otherwise. Tables and columns come from the database, the rest from the sources as they are.
 */
export function ourNames({ tables, columns }: Pick<OurNames, 'tables' | 'columns'>): OurNames {
  const files = sourceFiles(PROJECT, '.ts', '.mjs', '.sql')
  const frames = files
    .filter((file) => file.startsWith('shared/'))
    .flatMap((file) =>
      [...readFileSync(join(PROJECT, file), 'utf8').matchAll(/\bt: '([\w-]+)'/g)].map(([, name]) => name!),
    )
  return { tables, columns, files: files.filter((file) => file.includes('/')), frames: [...new Set(frames)] }
}

/** Words that the API speaks as well. */
const PUBLIC = new Set(['audit_log', 'awaiting_input'])

/**
 * Lines in which one of the names stands as such. Many are also plain words: those count where SQL or a frame has them.
 */
export function namesIn(text: string, { tables, columns, files, frames }: OurNames): string[] {
  const isSingle = (name: string) => !name.includes('_')
  const names = [...tables, ...columns].filter((name) => !isSingle(name) && !PUBLIC.has(name))
  const patterns = [
    new RegExp(`\\b(${names.join('|')})\\b`),
    new RegExp(`\\b(from|into|join|table|relation) "?(${tables.filter(isSingle).join('|')})\\b"?(?! of)`, 'i'),
    new RegExp(`\\b(${files.map((file) => file.replaceAll('.', '\\.')).join('|')})\\b`),
    new RegExp(`\\bt"?: ?["'](${frames.join('|')})["']`),
  ]
  return patterns.flatMap((pattern) => text.split('\n').filter((line) => pattern.test(line)))
}
