import { existsSync, readFileSync, realpathSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, sep } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from './typescript-api.cjs'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { isRelative, resolveRelative, typesPath } from './resolve-file.ts'

/** The made-up folder that the workflow's files lie in; nothing on the disk has this name. */
const ROOT = '/@workflow/'
const AMBIENT = '/@windlass/text-imports.d.ts'
const AMBIENT_TEXT = `
declare module '*.md' { const text: string; export default text }
declare module '*.txt' { const text: string; export default text }
`

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2024,
  lib: ['lib.es2024.d.ts', 'lib.esnext.disposable.d.ts'],
  module: ts.ModuleKind.ESNext,
  moduleResolution: ts.ModuleResolutionKind.Bundler,
  jsx: ts.JsxEmit.ReactJSX,
  strict: true,
  // Whether a program compiles at all is our business, how strictly its authors write is theirs.
  noImplicitAny: false,
  noImplicitThis: false,
  strictPropertyInitialization: false,
  noEmit: true,
  skipLibCheck: true,
  allowJs: true,
  checkJs: false,
  resolveJsonModule: true,
  allowImportingTsExtensions: true,
  esModuleInterop: true,
  types: [],
}

/** What every program shares: declarations that are ours, on the disk, and parsed once for as long as the worker lives. */
const libFolder = dirname(realpathSync.native(createRequire(import.meta.url).resolve('typescript-api')))
const sdkFile = installed(() => fileURLToPath(import.meta.resolve('windlass')))
const nodeTypesFile = installed(() =>
  fileURLToPath(import.meta.resolve('@types/node/package.json')).replace(/package\.json$/, 'index.d.ts'),
)
const trustedFolders = [libFolder, ...packageFolders()]
const parsed = new Map<string, ts.SourceFile>()

/** A type-checker over the given files. Nothing the files say makes it read any other file of this machine. */
export function programOver(files: readonly SourceFile[], entry: string) {
  const contents = new Map(files.map(({ path, content }) => [path, content]))
  const roots = [ROOT + entry, AMBIENT, ...(nodeTypesFile === undefined ? [] : [nodeTypesFile])]
  const program = ts.createProgram({ rootNames: roots, options: OPTIONS, host: hostOver(contents) })
  return { program, entryFile: program.getSourceFile(ROOT + entry) }
}

/** The workflow's own name of a file, or undefined for a file of ours. */
export function workflowPath(file: ts.SourceFile): string | undefined {
  return file.fileName.startsWith(ROOT) ? file.fileName.slice(ROOT.length) : undefined
}

function hostOver(contents: ReadonlyMap<string, string>): ts.CompilerHost {
  const own = new Map([...contents].map(([path, content]) => [ROOT + path, content]))
  own.set(AMBIENT, AMBIENT_TEXT)
  return {
    fileExists: (name) => own.has(name) || isTrustedFile(name),
    readFile: (name) => own.get(name) ?? readTrusted(name),
    getSourceFile: (name, language) => {
      const content = own.get(name)
      return content === undefined ? parseTrusted(name, language) : ts.createSourceFile(name, content, language, true)
    },
    resolveModuleNameLiterals: (literals, containing) =>
      literals.map(({ text }) => ({ resolvedModule: resolveModule(contents, containing, text) })),
    // `/// <reference types="…" />` would have TypeScript search the disk upwards.
    resolveTypeReferenceDirectiveReferences: (references) =>
      references.map(() => ({ resolvedTypeReferenceDirective: undefined })),
    getDefaultLibFileName: () => `${libFolder}/lib.es2024.full.d.ts`,
    getDefaultLibLocation: () => libFolder,
    getCurrentDirectory: () => ROOT.slice(0, -1),
    getCanonicalFileName: (name) => name,
    useCaseSensitiveFileNames: () => true,
    getNewLine: () => '\n',
    writeFile: () => undefined,
  }
}

function resolveModule(
  contents: ReadonlyMap<string, string>,
  containing: string,
  specifier: string,
): ts.ResolvedModuleFull | undefined {
  if (!containing.startsWith(ROOT)) return resolveTrusted(containing, specifier)
  if (specifier === 'windlass')
    return sdkFile === undefined ? undefined : { resolvedFileName: sdkFile, extension: ts.Extension.Ts }
  const importer = containing.slice(ROOT.length)
  if (!isRelative(specifier)) {
    // The types of a package, where the deploy ships them; its code is never searched for types.
    const path = typesPath(specifier)
    return contents.has(path) ? resolved(ROOT + path) : undefined
  }
  const path = resolveRelative(contents, importer, specifier)
  return path === undefined ? undefined : resolved(ROOT + path)
}

/** Our own files import the same each time; looking that up on the disk is most of what a second program would cost. */
const resolutions = new Map<string, ts.ResolvedModuleFull | undefined>()

function resolveTrusted(containing: string, specifier: string): ts.ResolvedModuleFull | undefined {
  const key = `${containing}\0${specifier}`
  if (!resolutions.has(key)) resolutions.set(key, lookUpTrusted(containing, specifier))
  return resolutions.get(key)
}

function lookUpTrusted(containing: string, specifier: string): ts.ResolvedModuleFull | undefined {
  const disk = { fileExists: isTrustedFile, readFile: readTrusted, realpath: realpathSync.native }
  const found = ts.resolveModuleName(specifier, containing, OPTIONS, disk).resolvedModule
  return found && isTrustedFile(found.resolvedFileName) ? found : undefined
}

function resolved(fileName: string): ts.ResolvedModuleFull | undefined {
  const extension = EXTENSIONS.find((known) => fileName.endsWith(known))
  return extension === undefined ? undefined : { resolvedFileName: fileName, extension }
}

const EXTENSIONS = [
  ts.Extension.Dmts,
  ts.Extension.Dts,
  ts.Extension.Ts,
  ts.Extension.Tsx,
  ts.Extension.Mts,
  ts.Extension.Js,
  ts.Extension.Jsx,
  ts.Extension.Mjs,
  ts.Extension.Cjs,
  ts.Extension.Json,
]

function parseTrusted(name: string, language: ts.ScriptTarget | ts.CreateSourceFileOptions): ts.SourceFile | undefined {
  const known = parsed.get(name)
  if (known) return known
  const content = readTrusted(name)
  if (content === undefined) return undefined
  const file = ts.createSourceFile(name, content, name.endsWith('.d.ts') ? withoutComments(language) : language)
  parsed.set(name, file)
  return file
}

/** Nobody reads the comments of Node and of the language here, and they are two thirds of what the first deploy would parse. */
function withoutComments(language: ts.ScriptTarget | ts.CreateSourceFileOptions): ts.CreateSourceFileOptions {
  const options = typeof language === 'object' ? language : { languageVersion: language }
  return { ...options, jsDocParsingMode: ts.JSDocParsingMode.ParseNone }
}

function readTrusted(name: string): string | undefined {
  return isTrustedFile(name) ? readFileSync(name, 'utf8') : undefined
}

function isTrustedFile(name: string): boolean {
  if (name.includes('..') || !existsSync(name)) return false
  const real = realpathSync.native(name)
  return trustedFolders.some((folder) => real.startsWith(folder + sep))
}

/** The packages whose declarations a program may see: ours, Node's, and what those two import. */
function packageFolders(): string[] {
  const manifests = ['windlass', '@types/node', 'undici-types', '@windlass/shared', 'zod'].map(
    (name) => `${name}/package.json`,
  )
  const found = manifests.map((manifest) => installed(() => fileURLToPath(import.meta.resolve(manifest))))
  return found.filter((file) => file !== undefined).map((file) => dirname(realpathSync.native(file)))
}

/** A file of an installed package; a production install has no types of Node, and programs are then read without them. */
function installed(locate: () => string): string | undefined {
  try {
    const file = locate()
    return existsSync(file) ? realpathSync.native(file) : undefined
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    if (code === 'ERR_MODULE_NOT_FOUND' || code === 'ERR_PACKAGE_PATH_NOT_EXPORTED') return undefined
    throw error
  }
}
