import { readFile, realpath } from 'node:fs/promises'
import path from 'node:path'
import type { Metafile, OnResolveArgs, Plugin, PluginBuild, ResolveResult } from 'esbuild'
import { packageName } from './build-failure.ts'
import { outsideFailure } from './outside-failure.ts'
import type { Outside } from './outside-failure.ts'

/** Keeps a build to the files of the packages that it bundles: an import is code of strangers. */
export interface PackageBounds {
  plugin: Plugin
  /** Throws when a pattern such as `./lang/${name}.js` reached out of its package: plugins do not see who has it. */
  checkGlobs(metafile: Metafile): Promise<void>
}

interface Bounds {
  /** Of the workflow: its real path. What no package imports is imported by it. */
  folder: string
  /** By the file's path as esbuild gives it: the real folder beneath which the file may load others. */
  roots: Map<string, string>
  /** What esbuild resolved. */
  answers: Map<string, Promise<ResolveResult>>
  /** All of these folders. */
  known: Set<string>
  /** Files that a pattern found. */
  globbed: Set<string>
}

// Marks the resolving that this plugin asks for itself.
const ASKED = Symbol('asked by package-bounds')

/** A file may load what lies beneath the real folder of its package, and packages by name; nothing else. */
export function boundPackages(folder: string): PackageBounds {
  const bounds: Bounds = { folder, roots: new Map(), known: new Set(), answers: new Map(), globbed: new Set() }
  return {
    plugin: {
      name: 'bound-packages',
      setup(builder) {
        builder.onResolve({ filter: /.*/ }, (args) => checkImport(bounds, builder, args))
        builder.onLoad({ filter: /.*/, namespace: 'file' }, ({ path: file }) => checkLoad(bounds, file))
      },
    },
    checkGlobs: (metafile) => checkGlobs(bounds, metafile),
  }
}

/** esbuild resolves on its own afterwards: what a plugin resolves loses the `type` of its package.json. */
async function checkImport(bounds: Bounds, builder: PluginBuild, args: OnResolveArgs) {
  if (args.pluginData === ASKED) return undefined
  const { path: specifier, importer, namespace, resolveDir, kind, with: attributes } = args
  const asked = { importer, namespace, resolveDir, kind, with: attributes, pluginData: ASKED }
  // One folder asks for the same file again and again: each question goes to esbuild's process and back.
  const key = JSON.stringify([namespace, resolveDir, kind, specifier, attributes])
  const answer = bounds.answers.get(key) ?? builder.resolve(specifier, asked)
  bounds.answers.set(key, answer)
  const found = await answer
  if (found.errors.length > 0 || found.external || found.namespace !== 'file') return undefined
  const isOwn = namespace !== 'file' || importer === ''
  const from = isOwn ? bounds.folder : bounds.roots.get(importer)
  const file = await realPathOf(found.path)
  const root =
    from === undefined || file === undefined ? undefined : await rootOf(specifier, { from, resolveDir, file })
  if (root === undefined) {
    const who = isOwn ? { leading: isBare(specifier) ? specifier : undefined } : { importer, from }
    return refusal({ folder: bounds.folder, file: found.path, ...who })
  }
  const known = bounds.roots.get(found.path)
  // Of two packages that reach a file the inner one has it.
  if (known === undefined || known.length < root.length) bounds.roots.set(found.path, root)
  bounds.known.add(root)
  return undefined
}

/** What was not resolved before was found by a pattern, which esbuild does not show to plugins. */
async function checkLoad(bounds: Bounds, file: string) {
  if (bounds.roots.has(file)) return undefined
  const real = await realPathOf(file)
  const around = [...bounds.known].filter((root) => real !== undefined && isBeneath(root, real))
  const root = around.sort((a, b) => b.length - a.length)[0]
  if (real === undefined || root === undefined) return refusal({ folder: bounds.folder, file })
  bounds.roots.set(file, narrowed(root, real))
  bounds.globbed.add(file)
  return undefined
}

async function checkGlobs({ folder, roots, globbed }: Bounds, metafile: Metafile): Promise<void> {
  if (globbed.size === 0) return
  const patterns: { importer: string; start: string }[] = []
  for (const [input, { imports }] of Object.entries(metafile.inputs)) {
    const importer = path.resolve(folder, input.replace(/[?#].*$/s, ''))
    for (const { path: pattern } of imports.filter(({ external, path: each }) => external && GLOB.test(each))) {
      const start = await realPathOf(path.resolve(path.dirname(importer), pattern.replace(/[^/]*\*.*$/s, '')))
      // A folder that is not there has no files.
      if (start !== undefined) patterns.push({ importer, start })
    }
  }
  for (const file of globbed) {
    const real = (await realPathOf(file)) ?? file
    const found = patterns.filter(({ start }) => isBeneath(start, real))
    const isInside = found.some(({ importer, start }) => {
      const from = roots.get(importer)
      return from !== undefined && isBeneath(from, start) && isBeneath(narrowed(from, real), roots.get(file) ?? '')
    })
    const importer = found[0]?.importer
    if (!isInside) throw outsideFailure({ folder, importer, from: importer && roots.get(importer), file })
  }
}

const GLOB = /^\.\.?\/.*\*/s

function refusal(outside: Outside) {
  return { errors: [{ text: 'outside of the package', detail: (at?: string) => outsideFailure(outside, at) }] }
}

interface Reached {
  /** The root of the importer. */
  from: string
  resolveDir: string
  /** The real path of what was found. */
  file: string
}

/** The real folder of the package to which an imported file belongs; undefined when the import must not have it. */
async function rootOf(specifier: string, reached: Reached): Promise<string | undefined> {
  if (specifier.startsWith('#')) return mappedRoot(specifier, reached)
  if (isBare(specifier)) return (await namedRoot(specifier, reached)) ?? (await selfRoot(specifier, reached))
  return isBeneath(reached.from, reached.file) ? narrowed(reached.from, reached.file) : undefined
}

/** `#name`, by `imports` of a package.json: a file of that package, or another package by name. */
async function mappedRoot(specifier: string, reached: Reached): Promise<string | undefined> {
  const scope = await scopeOf(reached.resolveDir)
  if (scope === undefined) return undefined
  for (const target of targetsOf(scope.manifest.imports, specifier)) {
    const named = isBare(target) ? await namedRoot(target, { ...reached, resolveDir: scope.folder }) : undefined
    if (named !== undefined) return named
    const [start = '', more] = target.split('*')
    const own = await realPathOf(path.join(scope.folder, more === undefined ? start : path.dirname(`${start}_`)))
    if (!isBare(target) && own !== undefined && isBeneath(own, reached.file)) return scopedRoot(scope.folder, reached)
  }
  return undefined
}

/** A package may name itself when it has `exports`. */
async function selfRoot(specifier: string, reached: Reached): Promise<string | undefined> {
  const scope = await scopeOf(reached.resolveDir)
  if (scope?.manifest.name !== packageName(specifier) || scope.manifest.exports === undefined) return undefined
  return scopedRoot(scope.folder, reached)
}

/** The program's own package may be larger than its folder, an installed one has what is beneath its folder. */
function scopedRoot(scope: string, { from, file }: Reached): string | undefined {
  const root = isInstalled(from) ? from : scope
  return isBeneath(root, file) ? narrowed(root, file) : undefined
}

/** Looks where Node would: `node_modules/<name>` of each folder above, and what such a link leads to. */
async function namedRoot(specifier: string, { from, file, resolveDir }: Reached): Promise<string | undefined> {
  const name = specifier.startsWith('.') ? specifier.split('/', 2).join('/') : packageName(specifier)
  if (name.split('/').some((part) => part === '' || part === '.' || part === '..')) return undefined
  for (let at = resolveDir; ; at = path.dirname(at)) {
    const root = await realPathOf(path.join(at, 'node_modules', name))
    if (root !== undefined && isBeneath(root, file)) {
      return (await isOpen({ root, from, at, specifier, name })) ? narrowed(root, file) : undefined
    }
    if (at === path.dirname(at)) return undefined
  }
}

/**
 * A linked package is a folder of the deployer, with more in it than would be published: an installed package gets what
 * its package.json offers, and nothing by a link that it brings along itself.
 */
async function isOpen(asked: { root: string; from: string; at: string; specifier: string; name: string }) {
  const { root, from, at, specifier, name } = asked
  const manifest = await manifestOf(root)
  // `.prisma/client` is a package; what tools lay down in `.cache` is none.
  if (name.startsWith('.') && manifest === undefined) return false
  if (!isInstalled(from) || isBeneath(from, root)) return true
  if (isInstalled(root)) return manifest !== undefined || !isBeneath(from, at)
  return manifest !== undefined && !isBeneath(from, at) && (specifier === name || manifest.exports !== undefined)
}

interface Manifest {
  name?: unknown
  exports?: unknown
  imports?: unknown
}

async function scopeOf(folder: string): Promise<{ folder: string; manifest: Manifest } | undefined> {
  for (let at = folder; ; at = path.dirname(at)) {
    const manifest = await manifestOf(at)
    if (manifest) return { folder: at, manifest }
    if (at === path.dirname(at)) return undefined
  }
}

async function manifestOf(folder: string): Promise<Manifest | undefined> {
  try {
    return JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as Manifest
  } catch {
    // It is not there, or esbuild says what is wrong with it.
    return undefined
  }
}

/** What `imports` may make of a name, under any condition. */
function targetsOf(imports: unknown, specifier: string): string[] {
  if (typeof imports !== 'object' || imports === null) return []
  const fits = ([key]: [string, unknown]) =>
    key.includes('*') ? specifier.startsWith(key.split('*')[0] ?? '') : key === specifier
  return Object.entries(imports)
    .filter(fits)
    .flatMap(([, target]) => stringsOf(target))
}

function stringsOf(value: unknown): string[] {
  if (typeof value === 'string') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(stringsOf) : []
}

function isBare(specifier: string): boolean {
  return !/^(#|\.\.?(\/|$))/.test(specifier) && !path.isAbsolute(specifier)
}

/** The deployer's own folders may have packages in them, which are no part of them. */
function narrowed(root: string, file: string): string {
  if (isInstalled(root)) return root
  const inside = /^.*[\\/]node_modules[\\/](?:@[^\\/]+[\\/])?[^\\/]+(?=[\\/])/s.exec(file.slice(root.length))?.[0]
  return inside === undefined ? root : root + inside
}

function isInstalled(root: string): boolean {
  return /[\\/]node_modules[\\/]/.test(root)
}

function isBeneath(root: string, file: string): boolean {
  return file === root || file.startsWith(root.endsWith(path.sep) ? root : root + path.sep)
}

async function realPathOf(file: string): Promise<string | undefined> {
  return realpath(file).catch(() => undefined)
}
