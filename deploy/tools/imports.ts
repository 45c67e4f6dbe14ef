// The import rule: reads every import line of the project and prints those that `import-rules.ts` forbids.
import { isBuiltin } from 'node:module'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import {
  ENGINE,
  ENGINE_CALLS,
  ENVIRONMENT,
  GATES,
  LAYERS,
  NEVER_UPWARD,
  NOT_OURS,
  SOLE_IMPORTERS,
} from './import-rules.ts'
import { OWN_STORE, AREAS, RULES, STORE, STORED, TEST_ONLY, VERBS } from './import-rules.ts'
import { readSource } from './import-lines.ts'
import type { ImportLine } from './import-lines.ts'
import { packageName, readPackages } from './packages.ts'
import type { Packages } from './packages.ts'
import { PROJECT, sourceFiles } from './source-files.ts'

/** Endings of what can import; a rule that knows `.ts` only would let the next `.mts` pass. */
const MODULES = ['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs']

export interface Violation {
  readonly file: string
  readonly line: number
  /** What stands there: `imports "x"`. */
  readonly what: string
  /** The sentence that forbids it. */
  readonly sentence: string
}

/** Every breach of the import rule, of the `process.env` rule and of the rule that what is imported is declared. */
export function checkImports(root: string): Violation[] {
  const packages = readPackages(root)
  const files = sourceFiles(root, ...MODULES).filter((file) => !NOT_OURS.test(file))
  return files.flatMap((file) => checkFile(file, readFileSync(path.join(root, file), 'utf8'), packages))
}

export function checkFile(file: string, text: string, packages: Packages): Violation[] {
  const { imports, environment } = readSource(file, text)
  const forbidden = imports.flatMap((line) => {
    const sentence = breach(file, line, packages)
    return sentence ? [{ file, line: line.line, what: `imports "${line.specifier}"`, sentence }] : []
  })
  if (ENVIRONMENT.files.test(file)) return forbidden
  const touched = environment.map((line) => ({
    file,
    line,
    what: 'touches process.env',
    sentence: ENVIRONMENT.sentence,
  }))
  return [...forbidden, ...touched]
}

function breach(file: string, line: ImportLine, packages: Packages): string | undefined {
  if (isBuiltin(line.specifier)) return undefined
  const undeclared = breachOfDeclaration(file, line.specifier, packages)
  if (undeclared) return undeclared
  const target = resolve(file, line.specifier, packages)
  return target === undefined ? breachOfPackage(file, line.specifier) : breachOfProject(file, target, line.typeOnly)
}

/** Path of the project's file that an import means; nothing when it means an npm package. */
function resolve(file: string, specifier: string, packages: Packages): string | undefined {
  if (specifier.startsWith('.')) return path.posix.join(path.posix.dirname(file), specifier)
  return packages.resolve(specifier)
}

function breachOfDeclaration(file: string, specifier: string, packages: Packages): string | undefined {
  if (specifier.startsWith('.')) return undefined
  const room = file.split('/')[0] ?? ''
  const name = packageName(specifier)
  if (packages.declares(room, name, isTest(file))) return undefined
  return `what a room imports is declared in its package.json: add \`${name}\` to ${room}/package.json`
}

function breachOfPackage(file: string, specifier: string): string | undefined {
  const area = AREAS.find((p) => holds(p.files, file))
  const name = packageName(specifier)
  if (area?.packages && !area.packages.includes(name)) return area.sentence
  const sole = SOLE_IMPORTERS.find((d) => d.pkg === name)
  if (!sole || sole.file === file || isFree(file)) return undefined
  return `only ${sole.file} imports ${sole.pkg}`
}

function breachOfProject(file: string, target: string, typeOnly: boolean): string | undefined {
  const area = AREAS.find((p) => holds(p.files, file))
  if (!area) return `every file stands in one of the rooms; ${file} does not`
  if (area.may !== 'all' && !holds(area.may, target) && !(typeOnly && holds(area.mayTypes ?? [], target)))
    return area.sentence
  if (isFree(file)) return undefined
  if (isTest(target)) return TEST_ONLY
  return file.startsWith('coordinator/') && target.startsWith('coordinator/')
    ? breachOfLayer(file, target, typeOnly)
    : undefined
}

function breachOfLayer(file: string, target: string, typeOnly: boolean): string | undefined {
  if (fitsPath(RULES.files, file)) return typeOnly || fitsPath(RULES.files, target) ? undefined : RULES.sentence
  const atHome = roomOf(file) === roomOf(target)
  const gate = GATES.find((one) => one.file === target)
  if (gate && gate.by !== file && !typeOnly) return `only ${gate.by} imports ${gate.file}`
  if (fitsPath(ENGINE, file) && !typeOnly && !holds(ENGINE_CALLS.may, target)) return ENGINE_CALLS.sentence
  if (STORE.test(target) && !atHome) return typeOnly ? undefined : OWN_STORE
  return layerOf(target) < layerOf(file) ? NEVER_UPWARD : undefined
}

const roomOf = (file: string) => (fitsPath(ENGINE, file) ? ENGINE : path.posix.dirname(file))

/**
 * Counted from the top, 0 being `main`. The longest path that fits wins, so that `jobs/queue.ts` is not one of the
 * jobs.
 */
function layerOf(file: string): number {
  if (STORED.file.test(file)) return layerNamed(STORED.layer)
  const fits = LAYERS.flatMap((layer) =>
    layer.files.filter((f) => fitsPath(f, file)).map((f) => ({ layer, length: f.length })),
  )
  const best = fits.sort((a, b) => b.length - a.length)[0]
  return best ? LAYERS.indexOf(best.layer) : layerNamed(VERBS)
}

const layerNamed = (name: string) => LAYERS.findIndex((layer) => layer.name === name)
const fitsPath = (pattern: string, file: string) => file.startsWith(pattern)
const holds = (patterns: readonly string[], file: string) => patterns.some((pattern) => fitsPath(pattern, file))
const isTest = (file: string) => /^[^/]+\/(test|e2e)\//.test(file)
const isFree = (file: string) => isTest(file) || file.startsWith('deploy/')

if (process.argv[1] === import.meta.filename) {
  const violations = checkImports(PROJECT)
  for (const v of violations) console.log(`${v.file}:${v.line} ${v.what}\n  ${v.sentence}`)
  process.exitCode = violations.length > 0 ? 1 : 0
}
