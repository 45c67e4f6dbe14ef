import type { Base, CallOptions } from '@windlass/shared/ops/base.ts'
import { inTime } from '@windlass/shared/ops/call.ts'
import type { Route } from '@windlass/shared/ops/op.ts'

interface Question<T> {
  answer: Promise<T>
  isAnswered: boolean
  callers: number
  stop: AbortController
}

/**
 * Asks for something once, for all calls that want it. Each of them waits for as long as its own signal and deadline
 * let it, and none ends the question for the others: it ends when nobody waits any more. A question that failed is
 * asked again by the next call.
 */
export function askedOnce<T>(base: Base, row: Route, ask: (signal: AbortSignal) => Promise<T>) {
  let known: Question<T> | undefined
  const begin = (): Question<T> => {
    const stop = new AbortController()
    const question: Question<T> = { answer: ask(stop.signal), isAnswered: false, callers: 0, stop }
    question.answer.then(
      () => (question.isAnswered = true),
      () => forget(question),
    )
    return question
  }
  const forget = (question: Question<T>) => {
    if (known === question) known = undefined
  }
  return async (options?: CallOptions): Promise<T> => {
    const question = (known ??= begin())
    question.callers++
    try {
      return await inTime(base, row, question.answer, options)
    } finally {
      if (--question.callers === 0 && !question.isAnswered) {
        forget(question)
        question.stop.abort()
      }
    }
  }
}
