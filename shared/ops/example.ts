import type { ops } from './index.ts'
import type { ArgsOf, Op } from './op.ts'
import type { z } from 'zod'

/** What is said and shown of an operation beyond its row. It is for documents: nothing loads it at a start. */
export interface Example<R> {
  /** What the summary leaves out: what changes, what a second call does, how to page, what comes next. */
  readonly about: string
  /** What is sent. */
  readonly input: ArgsOf<R>
  /** What comes back: JSON, or text where the answer is none. `{}` where there is no content. */
  readonly output: AnswerOf<R>
  /** Meanings of fields that their schema does not tell, and that are others here than in `FIELDS`. */
  readonly fields?: Partial<Record<keyof ArgsOf<R>, string>>
  /** Request headers that it heeds beside those that every operation does, with what they mean. */
  readonly headers?: Readonly<Record<string, string>>
  /** Of an answer in bytes: the types that it may have, and whether it has an `ETag`. */
  readonly bytes?: { readonly types: readonly [string, ...string[]]; readonly hasEtag: boolean }
}

type AnswerOf<R> = R extends Op<z.ZodObject, infer O> ? z.input<O> : never

/** Everything but what agents and programs speak. */
export type Documented = Omit<typeof ops, 'runnerSurface'>

/** One for every row of a group: a missing one does not compile, nor does one that its row would refuse. */
export type ExamplesOf<G extends keyof Documented> = {
  readonly [K in keyof Documented[G]]: Example<Documented[G][K]>
}
