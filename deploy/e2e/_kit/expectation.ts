import { isDeepStrictEqual } from 'node:util'
import type { Node } from '../programs/durable/interpreter/ast.ts'
import { described, made } from '../programs/durable/interpreter/values.ts'

/** What a program of the interpreter has to have done when its output is known. */
export interface Expectation {
  /** What is wrong with the output itself. */
  problems: string[]
  /** What must have happened, and what may have: the branches that lost a race. */
  must: Effects
  may: Effects
  /** Winners of races, by path. */
  winners: Map<string, number>
}

export interface Effects {
  /** Paths of steps whose function runs once; not of those that wait within. */
  steps: string[]
  /** Paths of calls that have one child, over all replays and attempts. */
  children: string[]
  /** What it writes, in order. */
  text: string[]
  phases: string[]
}

interface Context {
  path: string
  /** Of the run whose log is compared, and not of a child's. */
  isOwn: boolean
  isSure: boolean
  /** Below a child that fails: after a crash of its parent it is called anew, as failures are not reused. */
  isRepeatable: boolean
  /** In the function of a step that an earlier attempt may have executed, and written what it writes. */
  isReused: boolean
}

/** For a value that did not reach the output, as what came after it threw. */
const UNKNOWN = Symbol('unknown')
/** A failure whose message a parent reads, and what it is called there. */
const CHILD_FAILED = 'RunFailedError'

/** `attempt`: the last one, whose output it is. */
export function expect(program: Node, output: unknown, attempt: number): Expectation {
  const nothing = (): Effects => ({ steps: [], children: [], text: [], phases: [] })
  const found: Expectation = { problems: [], must: nothing(), may: nothing(), winners: new Map() }
  check(program, output, { path: '', isOwn: true, isSure: true, isRepeatable: false, isReused: false })
  return found

  function check(node: Node, actual: unknown, context: Context): void {
    const effects = context.isSure ? found.must : found.may
    const written = context.isSure && !context.isReused ? found.must : found.may
    switch (node.op) {
      case 'step':
        if (!node.inside) effects.steps.push(context.path)
        if (node.fails !== undefined) return
        if (node.inside) return check(node.inside, actual, { ...below(context, 'i'), isReused: attempt > 1 })
        return equals(described(made(node.value)), actual, context)
      case 'sleep':
        return equals('slept', actual, context)
      case 'delay':
        return equals('delayed', actual, context)
      case 'input':
        return equals('answer' in node.question ? node.question.answer : node.onTimeout, actual, context)
      case 'child': {
        const isRepeatable = context.isRepeatable || thrownBy(node) !== undefined
        if (!isRepeatable) effects.children.push(context.path)
        return check(node.program, actual, { ...below(context, 'c'), isOwn: false, isRepeatable })
      }
      case 'seq':
        return sequence(node.nodes, actual, context)
      case 'all':
        return node.nodes.forEach((each, index) => check(each, item(actual, index), below(context, index)))
      case 'race':
        return race(node.nodes, actual, context)
      case 'catch':
        return caught(node.body, actual, below(context, 'b'))
      case 'log':
      case 'write':
        if (context.isOwn) written.text.push(node.op === 'log' ? `${node.text}\n` : node.text)
        return undefined
      case 'phase':
        if (context.isOwn) written.phases.push(node.name)
        return undefined
      default:
        return undefined
    }
  }

  function sequence(nodes: Node[], actual: unknown, context: Context): void {
    for (const [index, each] of nodes.entries()) {
      check(each, item(actual, index), below(context, index))
      if (thrownBy(each) !== undefined) return
    }
  }

  function race(nodes: Node[], actual: unknown, context: Context): void {
    const { winner, value } = (actual === UNKNOWN ? { winner: -1 } : actual) as { winner: number; value: unknown }
    if (actual !== UNKNOWN) {
      if (!nodes[winner]) found.problems.push(`${context.path}: branch ${winner} won, which is none`)
      found.winners.set(context.path, winner)
    }
    for (const [index, each] of nodes.entries()) {
      const hasWon = index === winner
      check(each, hasWon ? value : UNKNOWN, { ...below(context, index), isSure: context.isSure && hasWon })
    }
  }

  function caught(body: Node, actual: unknown, context: Context): void {
    const thrown = thrownBy(body)
    if (thrown === undefined) return check(body, actual, context)
    equals({ caught: thrown }, actual, context)
    return check(body, UNKNOWN, context)
  }

  function equals(expected: unknown, actual: unknown, { path }: Context): void {
    if (actual === UNKNOWN || isDeepStrictEqual(actual, expected)) return
    found.problems.push(`${path}: ${JSON.stringify(actual)} in place of ${JSON.stringify(expected)}`)
  }
}

function below(context: Context, name: string | number): Context {
  return { ...context, path: `${context.path}/${name}` }
}

function item(actual: unknown, index: number): unknown {
  return actual === UNKNOWN ? UNKNOWN : (actual as unknown[] | undefined)?.[index]
}

/** `Error: message`, or nothing for what does not throw. Branches of `all` and `race` do not: the first to throw would be chance. */
export function thrownBy(node: Node): string | undefined {
  switch (node.op) {
    case 'throw':
      return `Error: ${node.message}`
    case 'step':
      return node.fails === undefined ? undefined : `Error: ${node.fails}`
    case 'seq':
      return node.nodes.map(thrownBy).find((thrown) => thrown !== undefined)
    case 'child':
      return thrownBy(node.program)?.replace(/^\w+/, CHILD_FAILED)
    default:
      return undefined
  }
}

/** Whether nothing in it goes on beside something else, so that what it writes has one order. */
export function isSequential(node: Node): boolean {
  if (node.op === 'all' || node.op === 'race') return false
  if (node.op === 'seq') return node.nodes.every(isSequential)
  if (node.op === 'catch' || node.op === 'finally') return isSequential(node.body)
  return node.op !== 'step' || !node.inside
}
