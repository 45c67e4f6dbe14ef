/**
 * Why `context.signal` aborted: somebody cancelled the run. It is `context.signal.reason`, and what `fetch` and others
 * that were given the signal reject with.
 *
 * @example
 * import { context, CancelledError } from 'windlass'
 *
 * export async function run() {
 *   try {
 *     await fetch('https://example.com/slow', { signal: context.signal })
 *   } finally {
 *     if (context.signal.reason instanceof CancelledError) console.log('cancelled: tidying up')
 *   }
 * }
 */
export class CancelledError extends Error {
  override readonly name = 'CancelledError'
  readonly code = 'CANCELLED'

  // The host is a bundle of its own, so a program's class is another object than the host's: the code is what they
  // share.
  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'CANCELLED')
  }
}

/** Why `context.signal` aborted: the run has used up the `timeout` of its descriptor. */
export class TimedOutError extends Error {
  override readonly name = 'TimedOutError'
  readonly code = 'TIMED_OUT'

  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'TIMED_OUT')
  }
}

/**
 * Why `context.signal` aborted: the agent is being stopped, and the run goes on elsewhere. Nobody has cancelled it, so
 * nothing is to be undone. Work that is given the signal may end here; the next attempt begins it again.
 *
 * Steps that succeed until then are kept. A step that fails is executed again by the next attempt, and the program is
 * not told of it. Once a program has looked at `context.signal`, what it does after the abort may come of that: its
 * further calls are made by the next attempt only, and so is what `run` returns.
 *
 * @example
 * import { context, AgentStoppedError } from 'windlass'
 *
 * export async function run() {
 *   try {
 *     await fetch('https://example.com/slow', { method: 'POST', signal: context.signal })
 *   } catch (error) {
 *     if (context.signal.reason instanceof AgentStoppedError) throw error
 *     await fetch('https://example.com/undo', { method: 'POST' })
 *   }
 * }
 */
export class AgentStoppedError extends Error {
  override readonly name = 'AgentStoppedError'
  readonly code = 'AGENT_STOPPED'

  static override [Symbol.hasInstance](value: unknown): boolean {
    return carries(value, 'AGENT_STOPPED')
  }
}

export function carries(value: unknown, code: string): boolean {
  return value instanceof Error && Reflect.get(value, 'code') === code
}
