import { posix } from 'node:path'

const EXTENSIONS = ['.ts', '.tsx', '.mts', '.js', '.mjs', '.cjs', '.json']

// TypeScript names the file that will exist after compiling: `./a.js` is written where `a.ts` lies.
const COMPILED_FROM: Record<string, string[]> = {
  '.js': ['.ts', '.tsx'],
  '.jsx': ['.tsx'],
  '.mjs': ['.mts'],
  '.cjs': ['.cts'],
}

/** Files of a workflow by path; all that resolving looks at. */
export type FileSet = { has(path: string): boolean }

export function isRelative(specifier: string): boolean {
  return /^\.{1,2}(\/|$)/.test(specifier)
}

/** The file that a relative import names, or undefined. Never leaves the given files. */
export function resolveRelative(files: FileSet, importer: string, specifier: string): string | undefined {
  const joined = posix.join(posix.dirname(importer), specifier)
  if (joined.startsWith('..')) return undefined
  const target = joined.replace(/\/$/, '')
  return candidates(target).find((candidate) => files.has(candidate))
}

/** Where `windlass deploy` puts the one-file bundle of an npm package. */
export function vendorPath(packageSpecifier: string): string {
  return `vendor/${packageSpecifier}.mjs`
}

/** Where the types of a package are looked for. */
export function typesPath(packageSpecifier: string): string {
  return `vendor/${packageSpecifier}.d.mts`
}

function candidates(target: string): string[] {
  const extension = posix.extname(target)
  const stem = target.slice(0, target.length - extension.length)
  const sources = (COMPILED_FROM[extension] ?? []).map((source) => stem + source)
  const inFolder = target === '.' ? 'index' : `${target}/index`
  return [target, ...sources, ...EXTENSIONS.map((e) => target + e), ...EXTENSIONS.map((e) => inFolder + e)]
}
