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

export function carries(value: unknown, code: string): boolean {
  return value instanceof Error && Reflect.get(value, 'code') === code
}
