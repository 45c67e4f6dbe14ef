import { isBuiltin } from 'node:module'
import path from 'node:path'
import * as esbuild from 'esbuild'
import type { Plugin } from 'esbuild'
import { buildFailure } from './build-failure.ts'
import { boundPackages } from './package-bounds.ts'

/** A package that the sources import. */
export interface PackageImport {
  /** As written: `lodash`, `@scope/pkg/sub`. */
  specifier: string
  /** The first file that imports it, relative to the folder. */
  importer: string
  /** All files that import it, relative to the folder. */
  importers: Set<string>
  isDynamic: boolean
}

export interface Scan {
  /** Files that the program consists of, relative to the folder, whatever their names. */
  sources: string[]
  packages: Map<string, PackageImport>
}

/** Follows the imports of the entry through the folder and notes every package that is really used. */
export async function scanImports(folder: string, entry: string): Promise<Scan> {
  const packages = new Map<string, PackageImport>()
  const bounds = boundPackages(folder)
  const { metafile } = await esbuild
    .build({
      absWorkingDir: folder,
      entryPoints: [`./${entry}`],
      plugins: [notePackages(folder, packages), bounds.plugin],
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node22',
      jsx: 'automatic',
      loader: { '.md': 'text' },
      tsconfigRaw: {},
      logLevel: 'silent',
    })
    .catch((error: unknown) => {
      throw buildFailure(error, folder)
    })
  await bounds.checkGlobs(metafile)
  const sources = Object.keys(metafile.inputs)
  return { sources, packages: stillImported(metafile, packages) }
}

function notePackages(folder: string, packages: Map<string, PackageImport>): Plugin {
  return {
    name: 'note-packages',
    setup(build) {
      build.onResolve({ filter: /^[^./]/ }, ({ path: specifier, kind, importer }) => {
        if (kind === 'entry-point') return undefined
        if (specifier === 'windlass' || isBuiltin(specifier)) return { path: specifier, external: true }
        const file = path.relative(folder, importer).split(path.sep).join('/')
        const known = packages.get(specifier) ?? {
          specifier,
          importer: file,
          importers: new Set<string>(),
          isDynamic: false,
        }
        known.importers.add(file)
        known.isDynamic ||= kind === 'dynamic-import' || kind === 'require-call'
        packages.set(specifier, known)
        return { path: specifier, external: true }
      })
    },
  }
}

/** Type-only imports are resolved and then dropped; a package of which nothing is left needs no bundle. */
function stillImported(metafile: esbuild.Metafile, packages: Map<string, PackageImport>): Map<string, PackageImport> {
  const left = new Set(Object.values(metafile.outputs).flatMap((output) => output.imports.map((i) => i.path)))
  return new Map([...packages].filter(([specifier]) => left.has(specifier)))
}
