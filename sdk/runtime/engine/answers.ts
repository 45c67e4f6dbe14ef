import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { Pending } from './pending.ts'
import type { Port } from './port.ts'

interface Answers {
  /** Called, and not given a result yet. */
  pending: ReadonlyMap<number, Pending>
  /** What is there of these. */
  results: { has(n: number): boolean; get(n: number): Completion | undefined }
  outbox: { answered(): Promise<void> }
  port: Pick<Port, 'soon'>
}

/** Resolves when all calls are committed, and the program has been given what came of those that were refused. */
export async function whenAnswered({ pending, results, outbox, port }: Answers, mayGive: () => boolean): Promise<void> {
  if (hasAsked()) await outbox.answered()
  while (hasRefusal() && mayGive()) await new Promise<void>((resolve) => port.soon(resolve))

  function hasAsked(): boolean {
    for (const [n, { call }] of pending)
      if ((call.kind === 'child' || call.kind === 'input') && !results.has(n)) return true
    return false
  }

  function hasRefusal(): boolean {
    for (const n of pending.keys()) if (results.get(n)?.state === 'failed') return true
    return false
  }
}
