import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { transform } from 'esbuild'
import type { Loader } from 'esbuild'

/** What of a package is used by name. */
export interface ImportedNames {
  names: Set<string>
  /** `import * as all` or `export *`: names that no list tells. */
  isWhole: boolean
}

const LOADERS: Record<string, Loader> = { '.ts': 'ts', '.mts': 'ts', '.cts': 'ts', '.tsx': 'tsx', '.jsx': 'jsx' }

/**
 * Which names the given files take from a package. Read from esbuild's own print, where an import has one form only.
 */
export async function importedNames(
  folder: string,
  importers: Iterable<string>,
  specifier: string,
): Promise<ImportedNames> {
  const found: ImportedNames = { names: new Set(), isWhole: false }
  for (const file of importers) {
    const source = await readFile(path.join(folder, file), 'utf8')
    const { code } = await transform(source, {
      loader: LOADERS[path.extname(file)] ?? 'js',
      format: 'esm',
      jsx: 'automatic',
      tsconfigRaw: {},
    })
    readNames(code, specifier, found)
  }
  return found
}

// `import def, { a as b } from "x"`, `import * as all from "x"`, `export { a } from "x"`, `export * from "x"`; lists
// may span lines.
const STATEMENT = /^(import|export)\s+([^"';]*?)\s+from\s+"([^"]+)"/gm

function readNames(code: string, specifier: string, found: ImportedNames): void {
  for (const [, keyword = '', clause = '', from] of code.matchAll(STATEMENT)) {
    if (from !== specifier) continue
    const listed = /\{([^}]*)\}/.exec(clause)?.[1]
    for (const entry of listed?.split(',') ?? []) {
      const name = entry.trim().split(/\s+as\s+/)[0]
      if (name) found.names.add(name)
    }
    const before = clause.replace(/\{[^}]*\}/, '')
    const whole = /\*(?:\s+as\s+([\w$]+))?/.exec(before)
    if (whole) addWhole(code, whole[1], found)
    if (keyword === 'import' && /^[\w$]/.test(before.trim())) found.names.add('default')
  }
}

/** `all.groupBy` names what is used of the whole. */
function addWhole(code: string, alias: string | undefined, found: ImportedNames): void {
  found.isWhole = true
  if (alias === undefined) return
  for (const [, name = ''] of code.matchAll(
    new RegExp(`(?<![\\w$.])${alias.replaceAll('$', '\\$')}\\.([A-Za-z_$][\\w$]*)`, 'g'),
  ))
    found.names.add(name)
}
