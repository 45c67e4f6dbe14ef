import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { groupCommit, type GroupCommit } from '../db/group-commit.ts'

/**
 * At most 500 in a second: at 1,400 in a second, from 1,000 networks, they took all of a processor. Nobody waits for it
 * while fewer than a statement holds are asked for at once.
 */
const MOST = 20
const REST_MS = 40

interface StrangerReads<I, O> {
  name: string
  log: Log
  /** Answers in the order of what is asked for. */
  read(this: void, asked: readonly I[]): Promise<O[]>
}

/**
 * Looks up what anybody may invent, such as an id or a token, from however many networks. Whoever asks while a
 * statement is under way shares the next one, each network in its turn: none has a seat that others want.
 */
export function strangerReads<I extends { network: string }, O>(options: StrangerReads<I, O>): GroupCommit<I, O> {
  const { name, log, read } = options
  return groupCommit<I, O>({
    name,
    log,
    orgOf: ({ network }) => network,
    // Whoever only reads is told at once that the database is away.
    patienceMs: 0,
    max: MOST,
    async commit(asked) {
      const found = await read(asked)
      if (asked.length >= MOST) await pause(REST_MS)
      return found
    },
  })
}
