import assert from 'node:assert/strict'
import type { FrameQueues } from '../../agent-link/frame-queue.ts'

/** A connection that notes what is read. Frames that are not answered at once wait until `answer` is called. */
export function aConnection(
  queues: FrameQueues,
  of: { id: string; orgId: string },
  read: string[],
  { weight = 0, isAnswered = true } = {},
) {
  const answers: (() => void)[] = []
  const closed: string[] = []
  const queue = queues.open(of, {
    read(text) {
      read.push(text)
      const piece = () => (isAnswered ? Promise.resolve() : new Promise<void>((resolve) => answers.push(resolve)))
      return { weight, pieces: [piece] }
    },
    failed: assert.fail,
    close: (code, reason) => closed.push(`${code} ${reason}`),
  })
  queue.add('hello')
  return { add: (text: string) => queue.add(text), end: () => queue.end(), answers, closed }
}

/** Entries that are read in a turn of their own. */
export const large = (name: string, chars = 20_000) => `{"t":"entries"${name}`.padEnd(chars, '.')
