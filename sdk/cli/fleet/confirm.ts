import { createInterface } from 'node:readline/promises'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'
import { safe } from '../terminal.ts'

/** Asks a person before what cannot be undone. A script has nobody to ask, and is taken at its word. */
export async function confirmed(session: Session, what: string, isSaid: boolean): Promise<void> {
  if (isSaid || session.isJson || !process.stdin.isTTY || !process.stderr.isTTY) return
  const asking = createInterface({ input: process.stdin, output: process.stderr })
  const given = new AbortController()
  asking.once('SIGINT', () => given.abort()).once('close', () => given.abort())
  try {
    const answer = await asking.question(`${safe(what, process.stderr)} [y/N] `, { signal: given.signal })
    if (/^y(es)?$/i.test(answer.trim())) return
  } catch (error) {
    if (!given.signal.aborted) throw error
    process.stderr.write('\n')
  } finally {
    asking.close()
  }
  throw new Failure('Nothing was changed.', 'the same command again, or with --yes', EXIT.interrupted, 'INTERRUPTED')
}
