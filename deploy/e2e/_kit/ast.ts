// Short names for the nodes of the interpreter's programs.
import type { JsonSchema } from 'windlass'
import type { Node, Question } from '../programs/durable/interpreter/ast.ts'

export const seq = (...nodes: Node[]): Node => ({ op: 'seq', nodes })
export const all = (...nodes: Node[]): Node => ({ op: 'all', nodes })
export const race = (...nodes: Node[]): Node => ({ op: 'race', nodes })
export const sleep = (ms: number): Node => ({ op: 'sleep', ms })
export const delay = (ms: number): Node => ({ op: 'delay', ms })
export const gate = (file: string): Node => ({ op: 'gate', file })
export const log = (text: string): Node => ({ op: 'log', text })
export const write = (text: string): Node => ({ op: 'write', text })
export const phase = (name: string): Node => ({ op: 'phase', name })
export const crash = (upTo = 1): Node => ({ op: 'crash', upTo })
export const fail = (message: string, upTo?: number): Node => ({ op: 'throw', message, ...(upTo && { upTo }) })
export const caught = (body: Node): Node => ({ op: 'catch', body })
export const concluded = (body: Node, text: string): Node => ({ op: 'finally', body, text })
export const attempt: Node = { op: 'attempt' }

export function step(
  name: string,
  more: { json?: unknown; takesMs?: number; fails?: string; inside?: Node } = {},
): Node {
  const { json = name, ...rest } = more
  return { op: 'step', name, value: { is: 'json', json }, ...rest }
}

/** A question that the test itself answers. */
export function ask(key: string, more: { timeoutMs?: number; onTimeout?: unknown; schema?: JsonSchema } = {}): Node {
  return { op: 'input', question: { key }, ...more }
}

/** A question that the responder answers. */
export function asked(key: string, answer: unknown): Node {
  const question: Question = { key, answer }
  return { op: 'input', question }
}

export function child(program: Node, workflow?: string): Node {
  return { op: 'child', program, ...(workflow && { workflow }) }
}
