import type { Node, ParseError } from 'jsonc-parser'
import { createScanner, findNodeAtLocation, getNodeValue, parseTree, printParseErrorCode } from 'jsonc-parser'
import { Fault } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { DESCRIPTOR_FILE, Descriptor } from '@windlass/shared/model/descriptor.ts'
import { firstIssue, plainMessages } from '@windlass/shared/model/strict.ts'
import { checkedCron } from '../schedules/rules/cron.ts'
import { refuseOnlyInGaps } from '../schedules/rules/only-in-gaps.ts'
import { checkedZone } from '../schedules/rules/zones.ts'
import { DeployError } from './deploy-error.ts'

const MAX_BYTES = 256 * 1024
// The parser recurses; real descriptors stay below ten.
const MAX_DEPTH = 50
/** Brackets, keys, values and what stands between them. They are read in some 50 ms. */
const MAX_TOKENS = 20_000
/** Keys that were taken once, and what takes their place. */
const FORMER = {
  environment: 'is no key any more: who starts a run names its environment, else it gets the base of the org',
}

/** Reads `workflow.jsonc`: comments and trailing commas are welcome, anything unknown is refused at its line. */
export function readDescriptor(source: string): Descriptor {
  const text = source.replace(/^\uFEFF/, '')
  if (Buffer.byteLength(text) > MAX_BYTES) refuse(text, `is larger than ${MAX_BYTES / 1024} KiB`, [], 0)
  const tree = parse(text)
  refuseRepeatedKeys(text, tree, [])
  for (const [key, message] of Object.entries(FORMER))
    if (findNodeAtLocation(tree, [key])) refuse(text, message, [key], offsetOf(tree, [key]))
  const read = Descriptor.safeParse(getNodeValue(tree), { error: plainMessages })
  if (read.success) {
    const refuseAt = (message: string, path: PropertyKey[]) => refusal(text, message, path, offsetOf(tree, path))
    return { ...read.data, schedules: checkedSchedules(read.data.schedules, refuseAt) }
  }
  const { path, message } = firstIssue(read.error)
  throw refusal(text, message, path, offsetOf(tree, path))
}

/** Patterns and zones as they are stored. */
function checkedSchedules(
  schedules: Descriptor['schedules'],
  refuseAt: (message: string, path: PropertyKey[]) => DeployError,
): Descriptor['schedules'] {
  return schedules.map((schedule, i) => {
    const { when } = schedule
    if (when.kind !== 'cron') return schedule
    try {
      const checked = { cron: checkedCron(when.cron, Date.now()), timezone: checkedZone(when.timezone) }
      refuseOnlyInGaps(checked, Date.now())
      return { ...schedule, when: { ...when, ...checked } }
    } catch (error) {
      if (!(error instanceof Fault)) throw error
      const field = String(error.detail?.path)
      throw refuseAt(error.message.replace(`${field}: `, 'is refused: '), ['schedules', i, field])
    }
  })
}

function parse(text: string): Node {
  refuseIntricate(text)
  if (text.trim() === '') refuse(text, 'is empty: it needs at least { "slug": "my-workflow" }', [], 0)
  const errors: ParseError[] = []
  const tree = parseTree(text, errors, { allowTrailingComma: true, disallowComments: false })
  const [first] = errors
  if (first)
    refuse(text, `is not valid JSON with comments: ${spaced(printParseErrorCode(first.error))}`, [], first.offset)
  if (tree?.type !== 'object') refuse(text, 'must be an object: { "slug": "my-workflow" }', [], tree?.offset ?? 0)
  return tree
}

/** Before anything is built of it. */
function refuseIntricate(text: string): void {
  const scanner = createScanner(text, true)
  let level = 0
  for (let tokens = 1; scanner.getPosition() < text.length; tokens++) {
    scanner.scan()
    // Strings are tokens of their own and begin otherwise.
    const offset = scanner.getTokenOffset()
    const start = text[offset]
    if (start === '{' || start === '[') level++
    if (start === '}' || start === ']') level--
    if (level > MAX_DEPTH) refuse(text, `is nested deeper than ${MAX_DEPTH} levels`, [], offset)
    if (tokens > MAX_TOKENS)
      refuse(
        text,
        `has more than ${MAX_TOKENS} keys, values and marks; let the program fetch what is larger`,
        [],
        offset,
      )
  }
}

/** JSON would silently keep the last of two; `__proto__` would silently vanish. */
function refuseRepeatedKeys(text: string, node: Node, path: (string | number)[]) {
  const seen = new Set<string>()
  for (const [index, child] of (node.children ?? []).entries()) {
    if (node.type === 'array') refuseRepeatedKeys(text, child, [...path, index])
    const [key, value] = child.children ?? []
    if (node.type !== 'object' || !key) continue
    const name = String(key.value)
    if (seen.has(name)) refuse(text, 'is given twice: keep one', [...path, name], key.offset)
    if (name === '__proto__') refuse(text, 'is not a key that can be used', [...path, name], key.offset)
    seen.add(name)
    if (value) refuseRepeatedKeys(text, value, [...path, name])
  }
}

/** Where the path is written, or the nearest thing around it that is written at all. */
function offsetOf(tree: Node, path: PropertyKey[]): number {
  const segments = path.map((segment) => (typeof segment === 'number' ? segment : String(segment)))
  for (let length = segments.length; length > 0; length--) {
    const node = findNodeAtLocation(tree, segments.slice(0, length))
    // The key is what a person looks for, so the property's start rather than its value's.
    if (node) return (node.parent?.type === 'property' ? node.parent : node).offset
  }
  return tree.offset
}

function refuse(text: string, message: string, path: PropertyKey[], offset: number): never {
  throw refusal(text, message, path, offset)
}

function refusal(text: string, message: string, path: PropertyKey[], offset: number): DeployError {
  const before = text.slice(0, offset).split('\n')
  const line = before.length
  const column = (before.at(-1)?.length ?? 0) + 1
  const field = fieldPath(path)
  const subject = field === '' || message.startsWith('unknown key') ? '' : ` \`${field}\``
  const detail = { path: field === '' ? `files/${DESCRIPTOR_FILE}` : field, file: DESCRIPTOR_FILE, line, column }
  return new DeployError(`${DESCRIPTOR_FILE}:${line}:${column}:${subject} ${message}`, detail)
}

/** `ValueExpected` → `value expected`. */
function spaced(code: string): string {
  return code.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase()
}
