import ts from 'typescript-api'

export interface ImportLine {
  readonly line: number
  readonly specifier: string
  /** True when nothing of it is left at run time. `import { type A }` is not: stripping leaves `import {}` behind. */
  readonly typeOnly: boolean
}

export interface SourceReading {
  readonly imports: readonly ImportLine[]
  /** Lines that touch `process.env`. */
  readonly environment: readonly number[]
}

/**
 * Reads imports of every form (static, re-export, `import()`, `require`, `import('…').Type`, the file of a worker) and
 * uses of `process.env`.
 */
export function readSource(file: string, text: string): SourceReading {
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false, ts.ScriptKind.TS)
  const lineOf = (node: ts.Node) => source.getLineAndCharacterOfPosition(node.getStart(source)).line + 1
  const imports: ImportLine[] = []
  const environment: number[] = []
  const visit = (node: ts.Node): void => {
    const named = importOf(node)
    if (named) imports.push({ line: lineOf(node), ...named })
    if (touchesEnvironment(node)) environment.push(lineOf(node))
    ts.forEachChild(node, visit)
  }
  visit(source)
  return { imports, environment }
}

type Found = Omit<ImportLine, 'line'>

function importOf(node: ts.Node): Found | undefined {
  if (ts.isImportDeclaration(node)) {
    const typeOnly = node.importClause?.phaseModifier === ts.SyntaxKind.TypeKeyword
    return literal(node.moduleSpecifier, typeOnly)
  }
  if (ts.isExportDeclaration(node)) return literal(node.moduleSpecifier, node.isTypeOnly)
  if (ts.isImportTypeNode(node))
    return ts.isLiteralTypeNode(node.argument) ? literal(node.argument.literal, true) : undefined
  if (ts.isExternalModuleReference(node)) return literal(node.expression, false)
  if (ts.isCallExpression(node) && isImportCall(node)) return literal(node.arguments[0], false)
  if (ts.isNewExpression(node)) return workerFile(node)
  return undefined
}

/** `new Worker(new URL('./judge.ts', import.meta.url))` runs that file as an import does. */
function workerFile(node: ts.NewExpression): Found | undefined {
  const [url] = node.arguments ?? []
  if (!isNamed(node.expression, 'Worker') || !url || !ts.isNewExpression(url)) return undefined
  return isNamed(url.expression, 'URL') ? literal(url.arguments?.[0], false) : undefined
}

const isNamed = (node: ts.Node, name: string) => ts.isIdentifier(node) && node.text === name

function literal(specifier: ts.Node | undefined, typeOnly: boolean): Found | undefined {
  return specifier && ts.isStringLiteralLike(specifier) ? { specifier: specifier.text, typeOnly } : undefined
}

function isImportCall(call: ts.CallExpression): boolean {
  if (call.expression.kind === ts.SyntaxKind.ImportKeyword) return true
  return isNamed(call.expression, 'require')
}

function touchesEnvironment(node: ts.Node): boolean {
  if (ts.isPropertyAccessExpression(node)) return node.name.text === 'env' && isProcess(node.expression)
  if (ts.isElementAccessExpression(node)) {
    return (
      ts.isStringLiteralLike(node.argumentExpression) &&
      node.argumentExpression.text === 'env' &&
      isProcess(node.expression)
    )
  }
  if (ts.isVariableDeclaration(node)) {
    return isProcess(node.initializer) && ts.isObjectBindingPattern(node.name) && node.name.elements.some(takesEnv)
  }
  if (ts.isImportDeclaration(node)) return importsEnv(node)
  return false
}

function isProcess(node: ts.Node | undefined): boolean {
  if (!node) return false
  if (ts.isPropertyAccessExpression(node)) return node.name.text === 'process'
  return ts.isIdentifier(node) && node.text === 'process'
}

function takesEnv(element: ts.BindingElement): boolean {
  const name = element.propertyName ?? element.name
  return ts.isIdentifier(name) && name.text === 'env'
}

function importsEnv(node: ts.ImportDeclaration): boolean {
  const from = ts.isStringLiteralLike(node.moduleSpecifier) ? node.moduleSpecifier.text : ''
  const bindings = node.importClause?.namedBindings
  if (from !== 'node:process' && from !== 'process') return false
  return (
    !!bindings &&
    ts.isNamedImports(bindings) &&
    bindings.elements.some((e) => (e.propertyName ?? e.name).text === 'env')
  )
}
