import type { JsonSchema } from 'windlass'

/** A program as data, so that tests can write thousands of them. Each node is evaluated to a value that JSON can carry. */
export type Node =
  /** `fails` in place of a value; `inside`: waits within the step's own function. */
  | { op: 'step'; name: string; value: Value; takesMs?: number; fails?: string; inside?: Node }
  | { op: 'sleep'; ms: number }
  /** Raw: nothing that the journal knows. */
  | { op: 'delay'; ms: number }
  /** Raw as well: until a file is there. */
  | { op: 'gate'; file: string }
  /** The prompt carries `question`, from which whoever answers knows what to say. */
  | { op: 'input'; question: Question; schema?: JsonSchema; timeoutMs?: number; onTimeout?: unknown }
  /** Of the same workflow unless one is named. */
  | { op: 'child'; program: Node; workflow?: string }
  | { op: 'seq' | 'all' | 'race'; nodes: Node[] }
  | { op: 'log'; text: string }
  /** No line of its own: what follows goes on in it. */
  | { op: 'write'; text: string }
  | { op: 'phase'; name: string }
  /** SIGKILL of the own process, in the attempts up to this one. */
  | { op: 'crash'; upTo: number }
  /** In the attempts up to this one; in all when left out. */
  | { op: 'throw'; message: string; upTo?: number }
  | { op: 'catch'; body: Node }
  /** Logs its text and the name of the error that came by, if any. */
  | { op: 'finally'; body: Node; text: string }
  | { op: 'attempt' }

/** What a step returns: types that JSON does not know among them. */
export type Value =
  | { is: 'json'; json: unknown }
  | { is: 'date'; ms: number }
  | { is: 'map'; entries: [string, number][] }
  | { is: 'bigint'; digits: string }
  | { is: 'bytes'; list: number[] }

/** `answer` is what to answer; without one nobody answers. */
export interface Question {
  key: string
  answer?: unknown
}

export interface Input {
  program: Node
  /** Where the run notes what it does, out of reach of everything that is killed meanwhile. */
  folder?: string
  /** Name of the file there. */
  key?: string
  /** Of the program in the one that called it. */
  path?: string
}

/** One line of the notes. */
export interface Note {
  what: 'start' | 'step' | 'race'
  path: string
  run: string
  attempt: number
  pid: number
  /** Of a race its winner. */
  winner?: number
}
