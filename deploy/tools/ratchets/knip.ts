import { NOT_OURS } from '../import-rules.ts'
import type { Offender } from './list.ts'
import { runTool } from './run-tool.ts'

const CONFIG = 'deploy/tools/ratchets/knip.jsonc'

interface Named {
  readonly name: string
}

interface Issues {
  readonly file: string
  readonly files: readonly Named[]
  readonly dependencies: readonly Named[]
  readonly devDependencies: readonly Named[]
  readonly exports: readonly Named[]
  readonly types: readonly Named[]
}

export interface Unused {
  readonly exports: readonly Offender[]
  /** Files that no entry reaches, and packages that no file imports. */
  readonly unused: readonly Offender[]
}

/**
 * Exports that no other file names, and files and packages that nothing uses. A type that stands in the signature of an
 * export in use counts as named. The cache goes by size and time of the files, and `npm ci` removes it.
 */
export async function findUnused(root: string): Promise<Unused> {
  const args = ['--config', CONFIG, '--cache', '--reporter', 'json', '--no-exit-code', '--no-progress']
  const found = (await runTool(root, 'knip/bin/knip.js', args)) as { issues: Issues[] }
  const issues = found.issues.filter(({ file }) => !NOT_OURS.test(file))
  return {
    exports: issues.flatMap((i) => named(i.file, [...i.exports, ...i.types])),
    unused: issues.flatMap((i) => [
      ...i.files.map(() => ({ file: i.file })),
      ...named(i.file, [...i.dependencies, ...i.devDependencies]),
    ]),
  }
}

const named = (file: string, names: readonly Named[]) => names.map(({ name }) => ({ file, what: name }))
