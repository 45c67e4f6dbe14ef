import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import ts from './typescript-api.cjs'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { isRelative, resolveRelative, typesPath } from './resolve-file.ts'

/** What a type checker cannot know here: npm packages come as code, without their types. */
export interface UntypedImports {
  /** Packages without types that this file imports, itself or through other files. */
  packagesOf(path: string): ReadonlySet<string>
}

interface Imports {
  files: string[]
  packages: string[]
}

const JSX = new Set(['.tsx', '.jsx'])

export function untypedImports(files: readonly SourceFile[]): UntypedImports {
  const contents = new Map(files.map(({ path, content }) => [path, content]))
  const read = new Map<string, Imports>()

  function importsOf(path: string): Imports {
    const known = read.get(path) ?? readImports(contents, path)
    read.set(path, known)
    return known
  }

  function packagesOf(path: string): Set<string> {
    const packages = new Set<string>()
    // A set is walked through to its end, also through what is added on the way.
    const reached = new Set([path])
    for (const file of reached) {
      const imports = importsOf(file)
      for (const next of imports.files) reached.add(next)
      for (const name of imports.packages) packages.add(name)
    }
    return packages
  }

  return { packagesOf }
}

function readImports(contents: ReadonlyMap<string, string>, path: string): Imports {
  const { importedFiles } = ts.preProcessFile(contents.get(path) ?? '', true, true)
  const imports: Imports = { files: [], packages: JSX.has(posix.extname(path)) ? ['react'] : [] }
  for (const { fileName: specifier } of importedFiles) {
    const file = isRelative(specifier) ? resolveRelative(contents, path, specifier) : undefined
    if (file !== undefined) imports.files.push(file)
    else if (isUntyped(contents, specifier)) imports.packages.push(nameOf(specifier))
  }
  return imports
}

function isUntyped(contents: ReadonlyMap<string, string>, specifier: string): boolean {
  if (isRelative(specifier) || specifier === 'windlass' || isBuiltin(specifier)) return false
  return !contents.has(typesPath(specifier))
}

/** `@scope/pkg/sub` → `@scope/pkg`. */
function nameOf(specifier: string): string {
  return specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/')
}
