import ts from './typescript-api.cjs'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { MOST_SCHEMA_CHARS } from '../judging/schema.ts'
import { DeployError, type DeployErrorDetail, type DeployProblem, tooLarge } from './deploy-error.ts'
import { NotJson } from './io-schema-fault.ts'
import { programOver, workflowPath } from './io-schema-host.ts'
import { type Direction, schemaOf } from './io-schema-walk.ts'
import type { JsonSchema } from './json-schema.ts'
import { type UntypedImports, untypedImports } from './untyped-imports.ts'

const MAX_WARNINGS = 50
// "Cannot find module", "has no declaration file", the same of JSX: the bundle has proved that the import exists.
const UNTYPED_IMPORT_CODES = new Set([2307, 7016, 2875])
// "Cannot find name", "no exported member", and the same with a guess: true whatever the types of packages are.
const CERTAIN_CODES = new Set([2304, 2305, 2552, 2614, 2724])
const PACKAGES_NAMED = 3

export type IoSchemas = { inputSchema: JsonSchema; outputSchema: JsonSchema; warnings: DeployProblem[] }

/** Schemas of what `run` takes and returns, read from its types. Runs in the process that builds. */
export function deriveIoSchemas(files: readonly SourceFile[], entry: string): IoSchemas {
  const { program, entryFile } = programOver(files, entry)
  if (!entryFile) throw new DeployError(`entry \`${entry}\` is not among the files`, { path: 'entry' })
  const run = runOf(program.getTypeChecker(), entryFile, entry)
  const untyped = untypedImports(files)
  const packages = untyped.packagesOf(entry)
  if (!run) {
    const unknown = packages.size > 0 ? [{ message: unknownTypes('`run`', packages), file: entry }] : []
    return { inputSchema: {}, outputSchema: {}, warnings: [...unknown, ...typeErrors(program, untyped)] }
  }
  const warnings: DeployProblem[] = []
  const warn = (message: string) => void warnings.push({ ...run.location, message })
  const unresolved = packages.size > 0 ? once((at) => warn(unknownTypes(`\`${at}\``, packages))) : undefined
  const schema = (type: ts.Type | undefined, direction: Direction) =>
    type
      ? located(run.location, () =>
          schemaOf(type, { program, direction, warn, ...(direction === 'input' && unresolved && { unresolved }) }),
        )
      : {}
  const inputSchema = schema(run.input, 'input')
  const outputSchema = schema(run.output, 'output')
  refuseLarge(inputSchema, 'the input type', run.location)
  refuseLarge(outputSchema, 'the return type', run.location)
  return { inputSchema, outputSchema, warnings: [...warnings, ...typeErrors(program, untyped)].slice(0, MAX_WARNINGS) }
}

function unknownTypes(what: string, packages: ReadonlySet<string>): string {
  const named = [...packages].slice(0, PACKAGES_NAMED).map((name) => `\`${name}\``)
  const others = packages.size > named.length ? ` and ${packages.size - named.length} more` : ''
  return (
    `the type of ${what} comes from an npm package (${named.join(', ')}${others}), and a deploy does not know their ` +
    "types: it is not checked and has no schema. Write the type out in the workflow's own files"
  )
}

/** The first time only. */
function once(act: (at: string) => void): (at: string) => void {
  let isDone = false
  return (at) => {
    if (!isDone) act(at)
    isDone = true
  }
}

/** Here, where it costs the coordinator nothing: a type of a few characters can have a schema of many MiB. */
function refuseLarge(schema: JsonSchema, what: string, location: Location) {
  const chars = JSON.stringify(schema).length
  if (chars <= MOST_SCHEMA_CHARS) return
  const why = `its JSON Schema has ${chars} characters, and ${MOST_SCHEMA_CHARS} are allowed`
  throw tooLarge(what, why, { path: `files/${location.file}`, ...location })
}

type Location = { file: string; line?: number; column?: number }
type Run = { input: ts.Type | undefined; output: ts.Type | undefined; location: Location }

/** Undefined when `run` is of a type unknown to the checker, and then anything goes. */
function runOf(checker: ts.TypeChecker, entryFile: ts.SourceFile, entry: string): Run | undefined {
  const symbol = exportedRun(checker, entryFile)
  if (!symbol) return undefined
  const type = checker.getTypeOfSymbolAtLocation(symbol, entryFile)
  const location = locationOf(symbol, entry)
  // The last of several signatures is the widest one by custom.
  const signature = type.getCallSignatures().at(-1)
  if (signature)
    return { input: inputOf(checker, signature, entryFile), output: outputOf(checker, signature), location }
  if (type.flags & ts.TypeFlags.Any) return undefined
  throw new DeployError(
    `\`run\` in ${entry} is not a function: write \`export async function run(input, context) { … }\``,
    {
      path: `files/${location.file}`,
      ...location,
    },
  )
}

function exportedRun(checker: ts.TypeChecker, entryFile: ts.SourceFile): ts.Symbol | undefined {
  const module = checker.getSymbolAtLocation(entryFile)
  const symbol = module && checker.getExportsOfModule(module).find(({ name }) => name === 'run')
  return symbol && symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
}

function inputOf(checker: ts.TypeChecker, signature: ts.Signature, entryFile: ts.SourceFile): ts.Type | undefined {
  const [parameter] = signature.parameters
  if (!parameter) return undefined
  const type = checker.getTypeOfSymbolAtLocation(parameter, entryFile)
  const declaration = parameter.valueDeclaration
  if (!declaration || !ts.isParameter(declaration)) return type
  // `run(...args)` would make a list of what is one value.
  if (declaration.dotDotDotToken) return undefined
  return declaration.initializer ? orUndefined(checker, type) : type
}

/** A parameter with a default may be left out, which its type does not say. */
function orUndefined(checker: ts.TypeChecker, type: ts.Type): ts.Type {
  return checker.getNullableType(type, ts.TypeFlags.Undefined)
}

function outputOf(checker: ts.TypeChecker, signature: ts.Signature): ts.Type | undefined {
  return checker.getAwaitedType(checker.getReturnTypeOfSignature(signature))
}

function located<T>(location: Location, work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof NotJson)) throw error
    const detail: DeployErrorDetail = { path: error.at, ...location }
    throw new DeployError(
      `${location.file}${location.line === undefined ? '' : `:${location.line}`}: ${error.message}`,
      detail,
    )
  }
}

function locationOf(symbol: ts.Symbol, entry: string): Location {
  const declaration = symbol.valueDeclaration ?? symbol.declarations?.[0]
  const source = declaration?.getSourceFile()
  const file = source && workflowPath(source)
  if (!declaration || !source || file === undefined) return { file: entry }
  return { file, ...lineOf(source, declaration.getStart(source)) }
}

/** Where types of packages are missing, what follows from that is no fault of the program, and looks like one. */
function typeErrors(program: ts.Program, untyped: UntypedImports): DeployProblem[] {
  const problems: DeployProblem[] = []
  for (const source of program.getSourceFiles()) {
    const file = workflowPath(source)
    if (file === undefined || problems.length >= MAX_WARNINGS) continue
    const isSure = untyped.packagesOf(file).size === 0
    for (const diagnostic of program.getSemanticDiagnostics(source)) {
      if (UNTYPED_IMPORT_CODES.has(diagnostic.code)) continue
      if (!isSure && !CERTAIN_CODES.has(diagnostic.code)) continue
      const message = ts.flattenDiagnosticMessageText(diagnostic.messageText, '\n')
      problems.push({ message, file, ...lineOf(source, diagnostic.start ?? 0) })
    }
  }
  return problems
}

function lineOf(source: ts.SourceFile, position: number) {
  const { line, character } = source.getLineAndCharacterOfPosition(position)
  return { line: line + 1, column: character + 1 }
}
