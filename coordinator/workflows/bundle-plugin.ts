import { isBuiltin } from 'node:module'
import { posix } from 'node:path'
import type { Loader, Location, OnResolveArgs, OnResolveResult, Plugin } from 'esbuild'
import { nearest } from '@windlass/shared/did-you-mean.ts'
import { computedPath } from './computed-path.ts'
import { isRelative, resolveRelative, vendorPath } from './resolve-file.ts'
import { NAMESPACE, withoutForeignMap } from './source-map.ts'

/** Refusal of a path made at run time, whether or not this machine has files that fit it. */
export const COMPUTED_PATH =
  'a path that is made at run time cannot be bundled: import each file by its plain path and choose among them'

const LOADERS: Record<string, Loader> = {
  '.ts': 'ts',
  '.mts': 'ts',
  '.cts': 'ts',
  '.tsx': 'tsx',
  '.js': 'js',
  '.mjs': 'js',
  '.cjs': 'js',
  '.jsx': 'jsx',
  '.json': 'json',
  '.txt': 'text',
  '.md': 'text',
}

/** Answers every import from the given files, so that esbuild never looks at a disk. */
export function memoryFiles(files: ReadonlyMap<string, string>): Plugin {
  return {
    name: 'memory-files',
    setup(build) {
      build.onResolve({ filter: /.*/ }, (args) => resolve(files, args))
      build.onLoad({ filter: /.*/, namespace: NAMESPACE }, async ({ path }) => {
        const loader = loaderOf(path)
        if (!loader)
          return problem(`\`${path}\` cannot be bundled: import ${Object.keys(LOADERS).join(', ')} files only`)
        const content = files.get(path) ?? ''
        const location = isCode(loader) ? await computedPath(content, loader) : undefined
        if (location) return problem(COMPUTED_PATH, { file: `${NAMESPACE}:${path}`, ...location })
        return { contents: isCode(loader) ? withoutForeignMap(content) : content, loader }
      })
      // esbuild asks nobody which files an `import(`./${name}.json`)` means: it looks them up on the disk. None is left
      // that we know of.
      build.onLoad({ filter: /.*/ }, () => problem(COMPUTED_PATH))
    },
  }
}

/** Whether a file is code, and so can be the entry. */
export function isProgram(path: string): boolean {
  return isCode(loaderOf(path))
}

function isCode(loader: Loader | undefined): boolean {
  return ['ts', 'tsx', 'js', 'jsx'].includes(loader ?? '')
}

/** How a file is read, or undefined when a program cannot import it. */
function loaderOf(path: string): Loader | undefined {
  return LOADERS[posix.extname(path).toLowerCase()]
}

function resolve(files: ReadonlyMap<string, string>, { path, importer, kind }: OnResolveArgs): OnResolveResult {
  // esbuild writes `./` before an entry that also lies in the coordinator's working directory.
  if (kind === 'entry-point') return inFiles(path.replace(/^\.\//, ''))
  if (path === 'windlass') return { path, external: true }
  if (isBuiltin(path)) return { path: path.startsWith('node:') ? path : `node:${path}`, external: true }
  if (path.endsWith('.node')) {
    return problem(
      `\`${path}\` is a native addon, and a bundle travels without its binaries: use a package in plain JavaScript or WebAssembly`,
    )
  }
  if (isRelative(path)) return resolveInside(files, importer, path)
  if (path.startsWith('/') || /^[a-z][a-z0-9+.-]*:/i.test(path)) {
    return problem(
      `\`${path}\` cannot be imported: import a file of the workflow by a relative path, or a package by its name`,
    )
  }
  const vendored = vendorPath(path)
  if (files.has(vendored)) return inFiles(vendored)
  // The deploy has found nothing there, and lets that pass only where the package goes on without it.
  if (kind === 'dynamic-import' && importer.startsWith('vendor/')) return { path, external: true }
  return problem(`\`${path}\` is not among the files: deploy with \`windlass deploy\`, which bundles npm packages`)
}

function resolveInside(files: ReadonlyMap<string, string>, importer: string, specifier: string): OnResolveResult {
  const found = resolveRelative(files, importer, specifier)
  if (found !== undefined) return inFiles(found)
  const wanted = posix.join(posix.dirname(importer), specifier)
  if (wanted.startsWith('..')) return problem(`\`${specifier}\` leaves the workflow folder: put the file inside it`)
  const near = nearest(wanted, files.keys())
  return problem(
    `\`${specifier}\` is not among the files${near === undefined ? '' : `, did you mean \`${relativeTo(importer, near)}\`?`}`,
  )
}

function relativeTo(importer: string, path: string): string {
  const relative = posix.relative(posix.dirname(importer), path)
  return isRelative(relative) ? relative : `./${relative}`
}

function inFiles(path: string): OnResolveResult {
  return { path, namespace: NAMESPACE }
}

function problem(text: string, location?: Partial<Location>) {
  return { errors: [{ text, ...(location && { location }) }] }
}
