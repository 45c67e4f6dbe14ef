// One file of declarations out of many: those of the wanted names, and what these refer to.
import { readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'

/** Names to begin with, by the file that exports them. */
export type Wanted = Readonly<Record<string, readonly string[]>>

interface Declared {
  /** Several where a function has overloads. */
  readonly texts: readonly string[]
  /** Every identifier in it. */
  readonly names: ReadonlySet<string>
}

interface Module {
  readonly declared: ReadonlyMap<string, Declared>
  /** Where a name comes from that is imported or passed on. */
  readonly from: ReadonlyMap<string, string>
}

const OPTIONS: ts.CompilerOptions = {
  target: ts.ScriptTarget.ES2024,
  module: ts.ModuleKind.NodeNext,
  strict: true,
  isolatedDeclarations: true,
  verbatimModuleSyntax: true,
}

/**
 * The declarations, in the order in which they are met; only those with a name in `wanted` are exported. A name in
 * `given` is left as it is: somebody else declares it.
 */
export function flatten(root: string, wanted: Wanted, given: ReadonlySet<string> = new Set()): string {
  const modules = new Map<string, Module>()
  const taken = new Map<string, string>()
  const texts: string[] = []
  const exported = new Set(Object.values(wanted).flat())
  const moduleOf = (file: string) => {
    const known = modules.get(file) ?? readModule(root, file)
    modules.set(file, known)
    return known
  }
  const take = (file: string, name: string): void => {
    if (given.has(name)) return
    const { declared, from } = moduleOf(file)
    const declaration = declared.get(name)
    const elsewhere = from.get(name)
    if (!declaration && elsewhere !== undefined) return take(elsewhere, name)
    if (!declaration) throw new Error(`${file} declares no ${name}`)
    const other = taken.get(name)
    if (other !== undefined && other !== file) throw new Error(`${name} is declared by ${other} and by ${file}`)
    if (other !== undefined) return
    taken.set(name, file)
    const at = texts.push('') - 1
    for (const used of declaration.names) if (declared.has(used) || from.has(used)) take(file, used)
    const own = declaration.texts.map((text) => (exported.has(name) ? text.replace(START, '$1export $2') : text))
    texts[at] = own.join('\n')
  }
  for (const [file, names] of Object.entries(wanted)) for (const name of names) take(file, name)
  // Without this line everything in a file of declarations is exported.
  return `${texts.join('\n')}\nexport {}\n`
}

/** All names that a file exports, for `wanted`. */
export function exportsOf(root: string, file: string): string[] {
  return [...readModule(root, file).from.keys()]
}

/** What stands before the declaration is its doc comment. */
const START = /^((?:\s*\/\*\*[^]*?\*\/)?\s*)((?:declare|interface|type|abstract|class)\b)/

function readModule(root: string, file: string): Module {
  const source = readFileSync(path.join(root, file), 'utf8')
  const made = ts.transpileDeclaration(source, { fileName: file, compilerOptions: OPTIONS, reportDiagnostics: true })
  const [problem] = made.diagnostics ?? []
  if (problem) throw new Error(`${file}: ${ts.flattenDiagnosticMessageText(problem.messageText, ' ')}`)
  const parsed = ts.createSourceFile(`${file}.d.ts`, made.outputText, ts.ScriptTarget.ES2024, true)
  const declared = new Map<string, Declared>()
  const from = new Map<string, string>()
  for (const statement of parsed.statements) {
    if (ts.isImportDeclaration(statement)) note(from, file, statement.importClause?.namedBindings, statement)
    else if (ts.isExportDeclaration(statement)) note(from, file, statement.exportClause, statement)
    else declare(declared, statement, parsed)
  }
  return { declared, from }
}

type Clause = ts.NamedImportBindings | ts.NamedExportBindings | undefined

function note(
  from: Map<string, string>,
  file: string,
  clause: Clause,
  { moduleSpecifier }: ts.ImportDeclaration | ts.ExportDeclaration,
): void {
  if (!moduleSpecifier) return
  const target = targetOf(file, (moduleSpecifier as ts.StringLiteral).text)
  if (!clause || !('elements' in clause)) throw new Error(`${file}: only names in braces are followed`)
  for (const { name, propertyName } of clause.elements) {
    if (propertyName) throw new Error(`${file}: ${name.text} has another name where it is declared`)
    from.set(name.text, target)
  }
}

function targetOf(file: string, specifier: string): string {
  if (specifier.startsWith('.')) return path.posix.join(path.posix.dirname(file), specifier)
  // A package of others fails when a name of it is wanted.
  return specifier.replace(/^@windlass\//, '')
}

function declare(declared: Map<string, Declared>, statement: ts.Statement, parsed: ts.SourceFile): void {
  const name = ts.isVariableStatement(statement)
    ? statement.declarationList.declarations[0]?.name
    : (statement as ts.DeclarationStatement).name
  if (!name || !ts.isIdentifier(name)) return
  const names = new Set<string>()
  const visit = (node: ts.Node): void => {
    if (ts.isIdentifier(node)) names.add(node.text)
    ts.forEachChild(node, visit)
  }
  visit(statement)
  names.delete(name.text)
  const plain = withoutTwins(statement, parsed).replace(/(^|\n)export (?=declare|interface|type|abstract|class)/, '$1')
  const before = declared.get(name.text)
  const all = new Set([...(before?.names ?? []), ...names])
  declared.set(name.text, { texts: [...(before?.texts ?? []), plain], names: all })
}

/** `transpileDeclaration` declares a method with a computed name, such as `[Symbol.hasInstance]`, as a field too. */
function withoutTwins(statement: ts.Statement, parsed: ts.SourceFile): string {
  const text = statement.getFullText(parsed)
  if (!ts.isClassDeclaration(statement)) return text
  const twins = statement.members.filter((member) => member.name && ts.isComputedPropertyName(member.name))
  const fields = twins.filter((member) => ts.isPropertyDeclaration(member)).map((member) => member.getFullText(parsed))
  return fields.reduce((rest, field) => rest.replace(field, ''), text)
}
