import { readFileSync } from 'node:fs'
import path from 'node:path'
import ts from 'typescript-api'
import { NOT_OURS } from '../import-rules.ts'
import { sourceFiles } from '../source-files.ts'
import type { Offender } from './list.ts'

/** Each of them has meant several things here. */
const NOUNS = ['bearer', 'door', 'knock', 'place', 'seeker', 'taker', 'word']
const OTHERS = ['homeless', 'hot', 'kept', 'live', 'standing', 'told']
const IS_ONE = new RegExp(`^((${NOUNS.join('|')})s?|${OTHERS.join('|')})$`)
/** Written by deploy/tools/sdk-types.ts. */
const GENERATED = /^sdk\/types\//
/** Reading a file takes long. Most of these words stand in comments. */
const COMMENT_LINES = /^ *(\/\/|\/\*|\* ).*$/gm
const MAY_HOLD_ONE = anyCase([...NOUNS, ...OTHERS])
/** What documents say of the rows of a group. */
const TEXTS_OF_ROWS = /^shared\/ops\/([\w-]+\/)?words\.ts$/
/** To place a run on a runner is a term. */
const PLACING = /^place[A-Z]/

/** Names of files, variables, functions, types and fields of types with a word that says too little, once a file. */
export function vagueNames(root: string): Offender[] {
  const files = sourceFiles(root, '.ts', '.mts', '.js', '.mjs').filter(
    (file) => !NOT_OURS.test(file) && !GENERATED.test(file),
  )
  return files.flatMap((file) => {
    const isVagueFile = isVague(path.basename(file).replace(/\..*/, '')) && !TEXTS_OF_ROWS.test(file)
    const inside = [...vagueIn(file, readFileSync(path.join(root, file), 'utf8'))].map((what) => ({ file, what }))
    return isVagueFile ? [{ file }, ...inside] : inside
  })
}

function vagueIn(file: string, text: string): Set<string> {
  const found = new Set<string>()
  if (!MAY_HOLD_ONE.test(text.replace(COMMENT_LINES, ''))) return found
  const source = ts.createSourceFile(file, text, ts.ScriptTarget.Latest, false)
  const visit = (node: ts.Node, parent?: ts.Node): void => {
    const name = nameGiven(node, parent)
    if (name !== undefined && !PLACING.test(name) && isVague(name)) found.add(name)
    ts.forEachChild(node, (child) => visit(child, node))
  }
  visit(source)
  return found
}

/** `liveLog`, `#toldAt`, `MOST_KEPT` and `cgroup-place` are names of several words. */
function isVague(name: string): boolean {
  const parts = name.replace(/([a-z\d])([A-Z])/g, '$1 $2').replace(/([A-Z]+)([A-Z][a-z])/g, '$1 $2')
  return parts.split(/[^A-Za-z]+/).some((part) => IS_ONE.test(part.toLowerCase()))
}

/** Finds `place`, `Place` and `PLACE` as parts of names, and in texts. */
function anyCase(parts: readonly string[]): RegExp {
  const lower = parts.join('|')
  const capital = parts.map((part) => part[0]!.toUpperCase() + part.slice(1)).join('|')
  const upper = lower.toUpperCase()
  return new RegExp(`(?<![A-Za-z])(${lower})s?(?![a-z])|(${capital})s?(?![a-z])|(?<![A-Z])(${upper})S?(?![A-Z])`)
}

/**
 * The name that a declaration gives. Values of objects, shorthand and types without a name often repeat a column or a
 * field of the API, whose names are not chosen here.
 */
function nameGiven(node: ts.Node, parent: ts.Node | undefined): string | undefined {
  const { name } = node as ts.NamedDeclaration
  if (!name || !(ts.isIdentifier(name) || ts.isPrivateIdentifier(name))) return undefined
  if (ts.isBindingElement(node) && !node.propertyName) return undefined
  if (parent && ts.isTypeLiteralNode(parent)) return undefined
  return isDeclaration(node) ? name.text : undefined
}

const isDeclaration = (node: ts.Node): boolean =>
  ts.isVariableDeclaration(node) ||
  ts.isParameter(node) ||
  ts.isBindingElement(node) ||
  ts.isFunctionLike(node) ||
  ts.isClassLike(node) ||
  ts.isInterfaceDeclaration(node) ||
  ts.isTypeAliasDeclaration(node) ||
  ts.isPropertyDeclaration(node) ||
  ts.isPropertySignature(node) ||
  ts.isTypeParameterDeclaration(node)
