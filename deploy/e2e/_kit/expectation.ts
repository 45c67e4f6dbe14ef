import { isDeepStrictEqual } from 'node:util'
import type { Node } from '../programs/durable/interpreter/ast.ts'
import { described, made } from '../programs/durable/interpreter/values.ts'

/** What a program of the interpreter has to have done when its output is known. */
export interface Expectation {
  /** What is wrong with the output itself. */
  problems: string[]
  /** What must have happened, and what may have: the branches that lost a race. */
  must: Told
  may: Told
  /** Winners of races, by path. */
  winners: Map<string, number>
}

export interface Told {
  /** Paths of steps whose function runs once; not of those that wait within. */
  steps: string[]
  /** Paths of calls that have one child, over all replays and attempts. */
  children: string[]
  /** What it writes, in order. */
  text: string[]
  phases: string[]
}

interface Place {
  path: string
  /** Of the run whose log is compared, and not of a child's. */
  isOwn: boolean
  isSure: boolean
  /** Below a child that fails: after a crash of its parent it is called anew, as failures are not reused. */
  isRepeatable: boolean
  /** In the function of a step that an earlier attempt may have executed, and written what it writes. */
  isKept: boolean
}

/** For a value that did not reach the output, as what came after it threw. */
const UNKNOWN = Symbol('unknown')
/** A failure whose message a parent reads, and what it is called there. */
const CHILD_FAILED = 'RunFailedError'

/** `attempt`: the last one, whose output it is. */
export function expect(program: Node, output: unknown, attempt: number): Expectation {
  const nothing = (): Told => ({ steps: [], children: [], text: [], phases: [] })
  const found: Expectation = { problems: [], must: nothing(), may: nothing(), winners: new Map() }
  check(program, output, { path: '', isOwn: true, isSure: true, isRepeatable: false, isKept: false })
  return found

  function check(node: Node, actual: unknown, place: Place): void {
    const told = place.isSure ? found.must : found.may
    const written = place.isSure && !place.isKept ? found.must : found.may
    switch (node.op) {
      case 'step':
        if (!node.inside) told.steps.push(place.path)
        if (node.fails !== undefined) return
        if (node.inside) return check(node.inside, actual, { ...below(place, 'i'), isKept: attempt > 1 })
        return equals(described(made(node.value)), actual, place)
      case 'sleep':
        return equals('slept', actual, place)
      case 'delay':
        return equals('delayed', actual, place)
      case 'input':
        return equals('answer' in node.question ? node.question.answer : node.onTimeout, actual, place)
      case 'child': {
        const isRepeatable = place.isRepeatable || thrownBy(node) !== undefined
        if (!isRepeatable) told.children.push(place.path)
        return check(node.program, actual, { ...below(place, 'c'), isOwn: false, isRepeatable })
      }
      case 'seq':
        return sequence(node.nodes, actual, place)
      case 'all':
        return node.nodes.forEach((each, index) => check(each, item(actual, index), below(place, index)))
      case 'race':
        return race(node.nodes, actual, place)
      case 'catch':
        return caught(node.body, actual, below(place, 'b'))
      case 'log':
      case 'write':
        if (place.isOwn) written.text.push(node.op === 'log' ? `${node.text}\n` : node.text)
        return undefined
      case 'phase':
        if (place.isOwn) written.phases.push(node.name)
        return undefined
      default:
        return undefined
    }
  }

  function sequence(nodes: Node[], actual: unknown, place: Place): void {
    for (const [index, each] of nodes.entries()) {
      check(each, item(actual, index), below(place, index))
      if (thrownBy(each) !== undefined) return
    }
  }

  function race(nodes: Node[], actual: unknown, place: Place): void {
    const { winner, value } = (actual === UNKNOWN ? { winner: -1 } : actual) as { winner: number; value: unknown }
    if (actual !== UNKNOWN) {
      if (!nodes[winner]) found.problems.push(`${place.path}: branch ${winner} won, which is none`)
      found.winners.set(place.path, winner)
    }
    for (const [index, each] of nodes.entries()) {
      const hasWon = index === winner
      check(each, hasWon ? value : UNKNOWN, { ...below(place, index), isSure: place.isSure && hasWon })
    }
  }

  function caught(body: Node, actual: unknown, place: Place): void {
    const thrown = thrownBy(body)
    if (thrown === undefined) return check(body, actual, place)
    equals({ caught: thrown }, actual, place)
    return check(body, UNKNOWN, place)
  }

  function equals(expected: unknown, actual: unknown, { path }: Place): void {
    if (actual === UNKNOWN || isDeepStrictEqual(actual, expected)) return
    found.problems.push(`${path}: ${JSON.stringify(actual)} in place of ${JSON.stringify(expected)}`)
  }
}

function below(place: Place, name: string | number): Place {
  return { ...place, path: `${place.path}/${name}` }
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
