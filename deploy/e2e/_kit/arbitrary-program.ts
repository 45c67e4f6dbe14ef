import * as fc from 'fast-check'
import type { Node, Value } from '../programs/durable/interpreter/ast.ts'

export interface ProgramOptions {
  /** Key of the program in its notes and questions. */
  key: string
  /** Whether attempts are lost by other hands than the program's own. */
  isKilled: boolean
}

const DEEPEST = 4
/** Of the sleeps for which a run is suspended. */
const LONG_SLEEP_MS = { min: 1000, max: 3000 }
const ANIMAL = fc.constantFrom('ant', 'bee', 'cat', 'dog', 'eel')

const value: fc.Arbitrary<Value> = fc.oneof(
  fc.record({
    is: fc.constant('json' as const),
    json: fc.constantFrom<unknown>(null, 0, 1.5, 'text', [1, 2], { a: 1 }),
  }),
  fc.record({ is: fc.constant('date' as const), ms: fc.integer({ min: 0, max: 2_000_000_000_000 }) }),
  fc.record({ is: fc.constant('map' as const), entries: fc.array(fc.tuple(ANIMAL, fc.nat(9)), { maxLength: 3 }) }),
  fc.record({
    is: fc.constant('bigint' as const),
    digits: fc.constantFrom('0', '-7', '123456789012345678901234567890'),
  }),
  fc.record({ is: fc.constant('bytes' as const), list: fc.array(fc.nat(255), { maxLength: 4 }) }),
)

/** Few names: equal calls beside each other are what a replay has to tell apart. */
const step: fc.Arbitrary<Node> = fc.record({
  op: fc.constant('step' as const),
  name: ANIMAL,
  value,
  takesMs: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, { weight: 1, arbitrary: fc.nat(20) }),
})
const failingStep: fc.Arbitrary<Node> = fc.record({
  op: fc.constant('step' as const),
  name: ANIMAL,
  value,
  fails: ANIMAL,
})
const shortSleep: fc.Arbitrary<Node> = fc.record({
  op: fc.constant('sleep' as const),
  ms: fc.integer({ min: 1, max: 40 }),
})
const longSleep: fc.Arbitrary<Node> = fc.record({ op: fc.constant('sleep' as const), ms: fc.integer(LONG_SLEEP_MS) })
const delay: fc.Arbitrary<Node> = fc.record({ op: fc.constant('delay' as const), ms: fc.nat(15) })
const log: fc.Arbitrary<Node> = fc.record({ op: fc.constant('log' as const), text: ANIMAL })
const write: fc.Arbitrary<Node> = fc.record({ op: fc.constant('write' as const), text: ANIMAL })
const phase: fc.Arbitrary<Node> = fc.record({ op: fc.constant('phase' as const), name: ANIMAL })
const thrown: fc.Arbitrary<Node> = fc.record({ op: fc.constant('throw' as const), message: ANIMAL })

function inputs(key: string): { answered: fc.Arbitrary<Node>; unanswered: fc.Arbitrary<Node> } {
  const op = fc.constant('input' as const)
  const answer = fc.constantFrom<unknown>('yes', 'no', 0, null, { ok: true })
  return {
    answered: fc.record({ op, question: fc.record({ key: fc.constant(key), answer }) }),
    unanswered: fc.record({
      op,
      question: fc.constant({ key }),
      timeoutMs: fc.integer({ min: 200, max: 1500 }),
      onTimeout: answer,
    }),
  }
}

/**
 * Without raw delays: a replay keeps the order of what the journal knows, and when a timer of Node's own ends beside it is chance.
 */
function withoutDelays(node: Node): Node {
  if (node.op === 'delay') return { op: 'sleep', ms: node.ms + 1 }
  if ('nodes' in node) return { ...node, nodes: node.nodes.map(withoutDelays) }
  if ('body' in node) return { ...node, body: withoutDelays(node.body) }
  if (node.op === 'step' && node.inside) return { ...node, inside: withoutDelays(node.inside) }
  return node
}

/** Programs of steps, waits, calls and branches, which come to a known output however often they are interrupted. */
export function arbitraryProgram({ key, isKilled }: ProgramOptions): fc.Arbitrary<Node> {
  const { answered, unanswered } = inputs(key)
  const leaf = fc.oneof(
    { weight: 6, arbitrary: step },
    { weight: 3, arbitrary: shortSleep },
    { weight: 2, arbitrary: answered },
    { weight: 1, arbitrary: unanswered },
    { weight: 1, arbitrary: longSleep },
    { weight: 2, arbitrary: delay },
    { weight: 2, arbitrary: log },
    { weight: 1, arbitrary: phase },
  )
  const seqOf = (each: fc.Arbitrary<Node>, from = 1) =>
    fc.array(each, { minLength: from, maxLength: 4 }).map((nodes): Node => ({ op: 'seq', nodes }))
  const branches = (op: 'all' | 'race', each: fc.Arbitrary<Node>) =>
    fc
      .array(op === 'race' ? each.map(withoutDelays) : each, { minLength: 2, maxLength: 3 })
      .map((nodes): Node => ({ op, nodes }))

  const { node } = fc.letrec<{ node: Node; child: Node; caught: Node }>((tie) => ({
    child: fc
      .tuple(tie('node'), fc.nat(9))
      .map(([node, dice]): Node => ({ op: 'child', program: dice === 0 ? withCrash(asSeq([node]), 1) : node })),
    caught: fc
      .tuple(
        seqOf(tie('node'), 0),
        fc.oneof(
          failingStep,
          thrown,
          seqOf(leaf).chain((body) => failingChild(body)),
        ),
      )
      .map(([before, last]): Node => ({
        op: 'catch',
        body: { op: 'seq', nodes: [before, last] },
      })),
    node: fc.oneof(
      { maxDepth: DEEPEST, depthIdentifier: 'program', withCrossShrink: true },
      { weight: 8, arbitrary: leaf },
      { weight: 3, arbitrary: seqOf(tie('node')) },
      { weight: 2, arbitrary: branches('all', tie('node')) },
      { weight: 1, arbitrary: branches('race', tie('node')) },
      { weight: 1, arbitrary: tie('child') },
      { weight: 1, arbitrary: tie('caught') },
      { weight: 1, arbitrary: seqOf(leaf).map(waitingStep) },
    ),
  }))
  // Without branches every line has its place, and those that are not ended can be told too.
  const sequential = fc.array(fc.oneof(leaf, write, answered), { minLength: 3, maxLength: 8 }).map(asSeq)
  const mixed = fc.array(node, { minLength: 2, maxLength: 4 }).map(asSeq)
  return fc
    .tuple(fc.oneof({ weight: 3, arbitrary: mixed }, { weight: 1, arbitrary: sequential }), fc.nat(11), fc.nat(8))
    .map(([program, dice, at]) => (dice === 0 ? withCrash(program, at) : program))
    .map((program) => (isKilled || JSON.stringify(program).includes('"crash"') ? withTellingNames(program) : program))
}

/**
 * Steps of one name give one value. In another attempt branches go on in another order, and what has the same name there may have
 * been somebody else's: whoever gives one name to different steps side by side says that they may stand for each other.
 */
function withTellingNames(node: Node): Node {
  if ('nodes' in node) return { ...node, nodes: node.nodes.map(withTellingNames) }
  if ('body' in node) return { ...node, body: withTellingNames(node.body) }
  if (node.op === 'child') return { ...node, program: withTellingNames(node.program) }
  if (node.op !== 'step') return node
  const { op: _, name, takesMs: __, ...meant } = node
  const own = { ...node, name: `${name} ${JSON.stringify(meant)}`.slice(0, 150) }
  return node.inside ? { ...own, inside: withTellingNames(node.inside) } : own
}

function asSeq(nodes: Node[]): Node & { op: 'seq' } {
  return { op: 'seq', nodes }
}

function waitingStep(inside: Node): Node {
  return { op: 'step', name: 'waits', value: { is: 'json', json: null }, inside }
}

function failingChild(before: Node): fc.Arbitrary<Node> {
  return ANIMAL.map((message): Node => ({
    op: 'child',
    program: asSeq([before, { op: 'throw', message }]),
  }))
}

/** One that loses its first attempt at some place of its outermost sequence. */
function withCrash({ nodes }: Node & { op: 'seq' }, at: number): Node {
  return asSeq(nodes.toSpliced(at % (nodes.length + 1), 0, { op: 'crash', upTo: 1 }))
}
