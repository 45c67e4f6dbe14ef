import path from 'node:path'
import * as esbuild from 'esbuild'
import type { BuildResult, Plugin } from 'esbuild'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { buildFailure } from './build-failure.ts'
import { importedNames } from './imported-names.ts'
import { refuseNativeFile, refuseNativePackages } from './native.ts'
import { boundPackages } from './package-bounds.ts'
import type { PackageImport } from './scan.ts'

export interface Vendored {
  files: SourceFile[]
  warnings: string[]
}

type Result = BuildResult<{ write: false; metafile: true }>

const FOLDER = 'vendor'
const STUB = 'windlass-stub'

/**
 * Bundles each npm package that the sources import into `vendor/<name>.mjs`, where the service looks for it. What
 * several of them share lies in common chunks, so that a package's state exists once.
 */
export async function vendorPackages(folder: string, packages: ReadonlyMap<string, PackageImport>): Promise<Vendored> {
  if (packages.size === 0) return { files: [], warnings: [] }
  const plain = await build(folder, packages, new Map())
  await refuseNativePackages(folder, Object.keys(plain.metafile.inputs))
  const common = [...packages.values()].filter(({ specifier }) => formatOf(plain, specifier) === 'cjs')
  if (common.length === 0) return { files: filesOf(folder, plain), warnings: [] }
  // A CommonJS package has no list of exports: it is given one, of the names that are used.
  const stubs = await Promise.all(common.map((used) => stubOf(folder, used)))
  const result = await build(folder, packages, new Map(stubs.map(({ specifier, code }) => [specifier, code])))
  return { files: filesOf(folder, result), warnings: stubs.flatMap(({ warnings }) => warnings) }
}

async function build(
  folder: string,
  packages: ReadonlyMap<string, PackageImport>,
  stubs: ReadonlyMap<string, string>,
): Promise<Result> {
  const bounds = boundPackages(folder)
  const result = await esbuild
    .build({
      absWorkingDir: folder,
      entryPoints: [...packages.keys()].map((specifier) => ({ in: specifier, out: specifier })),
      plugins: [resolvePackages(folder, packages, stubs), refuseNativeFile, bounds.plugin],
      outdir: FOLDER,
      outExtension: { '.js': '.mjs' },
      chunkNames: '_shared/[name]-[hash]',
      splitting: true,
      bundle: true,
      write: false,
      metafile: true,
      format: 'esm',
      platform: 'node',
      target: 'node22',
      charset: 'utf8',
      legalComments: 'inline',
      tsconfigRaw: {},
      logLevel: 'silent',
    })
    .catch((error: unknown) => {
      throw buildFailure(error, folder)
    })
  await bounds.checkGlobs(result.metafile)
  return result
}

/** Entries are package names: they are looked up from the file that imports them, not from the folder. */
function resolvePackages(
  folder: string,
  packages: ReadonlyMap<string, PackageImport>,
  stubs: ReadonlyMap<string, string>,
): Plugin {
  const importerFolder = (specifier: string) =>
    path.join(folder, path.dirname(packages.get(specifier)?.importer ?? '.'))
  return {
    name: 'resolve-packages',
    setup(builder) {
      builder.onResolve({ filter: /.*/ }, ({ path: given, kind }) => {
        // The agent brings `windlass` along; `windlass/client` is a package like any other.
        if (given === 'windlass') return { path: given, external: true }
        if (kind !== 'entry-point') return undefined
        // esbuild puts `./` in front when the folder happens to hold a file of that name.
        const specifier = given.replace(/^\.\//, '')
        if (stubs.has(specifier)) return { path: specifier, namespace: STUB }
        return builder.resolve(specifier, { resolveDir: importerFolder(specifier), kind: 'import-statement' })
      })
      builder.onLoad({ filter: /.*/, namespace: STUB }, ({ path: specifier }) => {
        return { contents: stubs.get(specifier) ?? '', resolveDir: importerFolder(specifier), loader: 'js' }
      })
    },
  }
}

async function stubOf(
  folder: string,
  used: PackageImport,
): Promise<{ specifier: string; code: string; warnings: string[] }> {
  const { specifier, isDynamic, importer } = used
  const { names, isWhole } = await importedNames(folder, used.importers, specifier)
  names.add('default')
  const warnings =
    isDynamic || (isWhole && names.size === 1)
      ? [
          `${importer}: \`${specifier}\` is a CommonJS package and imported as a whole: only its default export is ` +
            'there; import what you need by name',
        ]
      : []
  return { specifier, code: `export { ${[...names].sort().join(', ')} } from ${JSON.stringify(specifier)}\n`, warnings }
}

/** Whether the file behind a package name is CommonJS. */
function formatOf({ metafile }: Result, specifier: string): 'cjs' | 'esm' | undefined {
  const output = metafile.outputs[`${FOLDER}/${specifier}.mjs`]
  return output?.entryPoint === undefined ? undefined : metafile.inputs[output.entryPoint]?.format
}

function filesOf(folder: string, result: Result): SourceFile[] {
  return result.outputFiles.map(({ path: file, text }) => ({
    path: path.relative(folder, file).split(path.sep).join('/'),
    content: text.includes(REQUIRE_SHIM) ? REQUIRE_BANNER + text : text,
  }))
}

// What esbuild writes into a module whose CommonJS code asks for a module of Node. An ES module has no `require` by
// itself.
const REQUIRE_SHIM = 'var __require = '
const REQUIRE_BANNER =
  "import { createRequire as windlassCreateRequire } from 'node:module'; " +
  'const require = windlassCreateRequire(import.meta.url);\n'
