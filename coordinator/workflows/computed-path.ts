import { SourceMap, type SourceMapPayload } from 'node:module'
import * as esbuild from 'esbuild'
import ts from './typescript-api.cjs'

export interface Location {
  /** From 1. */
  line: number
  /** From 0, as esbuild counts. */
  column: number
}

/** Code that may call `import` or `require` with more than a plain string; a name may be written in escapes. */
const MAY_ASK = /import(?!\s*["'{*\w$])|require|\\u/
/** Printed code that does: a plain path stands in quotes, and nothing but a bracket or further arguments behind it. */
const ASKS = /\b(?:import|import\.\w+|require)\((?!"(?:[^"\\\n]|\\.)*"[),])/
const OPTIONS: esbuild.TransformOptions = {
  target: 'node22',
  charset: 'utf8',
  jsx: 'automatic',
  legalComments: 'none',
  logLevel: 'silent',
  tsconfigRaw: {},
  sourcemap: 'external',
  sourcesContent: false,
}

/**
 * The first place where code imports from a relative path that is made at run time. esbuild would look for files that
 * fit it on this machine's disk, and the time that takes would tell what is there. It is asked first to print the code
 * in its own words: what it reads as such a call, and how it joins constant parts, is settled then.
 */
export async function computedPath(code: string, loader: esbuild.Loader): Promise<Location | undefined> {
  if (!MAY_ASK.test(code)) return undefined
  const printed = await esbuild.transform(code, { ...OPTIONS, loader }).catch(() => undefined)
  // What is no program is refused by the build, with the place of the fault.
  if (printed === undefined || !ASKS.test(printed.code)) return undefined
  const file = ts.createSourceFile('printed.js', printed.code, ts.ScriptTarget.ESNext, false, ts.ScriptKind.JS)
  const at = firstCall(file)
  return at === undefined ? undefined : locationBefore(printed.map, file.getLineAndCharacterOfPosition(at))
}

/** Without recursion: a program may be nested deeper than the stack. */
function firstCall(file: ts.SourceFile): number | undefined {
  const open: ts.Node[] = [file]
  for (let node = open.pop(); node; node = open.pop()) {
    if (ts.isCallExpression(node) && asksForFile(node.expression) && isMade(node.arguments[0])) {
      return node.getStart(file)
    }
    const children: ts.Node[] = []
    ts.forEachChild(node, (child) => void children.push(child))
    open.push(...children.toReversed())
  }
  return undefined
}

function asksForFile(callee: ts.Expression): boolean {
  if (ts.isMetaProperty(callee)) return callee.keywordToken === ts.SyntaxKind.ImportKeyword
  return callee.kind === ts.SyntaxKind.ImportKeyword || (ts.isIdentifier(callee) && callee.text === 'require')
}

function isMade(path: ts.Expression | undefined): boolean {
  if (path === undefined) return false
  if (ts.isParenthesizedExpression(path)) return isMade(path.expression)
  if (ts.isConditionalExpression(path)) return isMade(path.whenTrue) || isMade(path.whenFalse)
  if (isOperation(path, ts.SyntaxKind.CommaToken)) return isMade(path.right)
  const isJoined = ts.isTemplateExpression(path) || isOperation(path, ts.SyntaxKind.PlusToken)
  return isJoined && beginningOf(path).text.startsWith('.')
}

function isOperation(node: ts.Node, operator: ts.SyntaxKind): node is ts.BinaryExpression {
  return ts.isBinaryExpression(node) && node.operatorToken.kind === operator
}

interface Beginning {
  text: string
  /** Nothing but the text: what follows belongs to the beginning too. */
  isWhole: boolean
}

/** The constant text that an expression begins with: what the build joins further than the printed code does. */
function beginningOf(node: ts.Expression): Beginning {
  if (ts.isParenthesizedExpression(node)) return beginningOf(node.expression)
  if (ts.isStringLiteralLike(node)) return { text: node.text, isWhole: true }
  const parts = ts.isTemplateExpression(node)
    ? [node.head, ...node.templateSpans.flatMap(({ expression, literal }) => [expression, literal])]
    : isOperation(node, ts.SyntaxKind.PlusToken)
      ? [node.left, node.right]
      : []
  let text = ''
  for (const part of parts) {
    const next = isPiece(part) ? { text: part.text, isWhole: true } : beginningOf(part)
    text += next.text
    if (!next.isWhole) return { text, isWhole: false }
  }
  return { text, isWhole: parts.length > 0 }
}

function isPiece(node: ts.Node): node is ts.TemplateHead | ts.TemplateMiddle | ts.TemplateTail {
  return ts.isTemplateHead(node) || ts.isTemplateMiddleOrTemplateTail(node)
}

function locationBefore(map: string, { line, character }: ts.LineAndCharacter): Location {
  const entry = new SourceMap(JSON.parse(map) as SourceMapPayload).findEntry(line, character)
  return 'originalLine' in entry
    ? { line: entry.originalLine + 1, column: entry.originalColumn }
    : { line: 1, column: 0 }
}
