import { isFinal, type Run } from '@windlass/shared/model/run.ts'
import type { Client } from 'windlass/client'
import type { Input } from '../programs/fleet/index.ts'
import { brokenLog } from './chaos-rules.ts'
import { ledgerOf, linesOf, overlapsIn, wrongEnd } from './ledger.ts'
import { get, wholeLog } from './runs.ts'
import { until } from './until.ts'

export interface Judged {
  /** What is wrong, a sentence each. */
  wrong: string[]
  attempts: number
  /** The longest time for which two processes executed one run; only as long as was allowed. */
  overlapMs: number
}

/** The run and, where it had children, these: each as it ended, after `ms` at the latest. */
export async function familiesEnded(client: Client, ids: readonly string[], ms: number): Promise<Run[]> {
  const runs = await Promise.all(ids.map((id) => endedOrWhy(client, id, ms)))
  const children = await Promise.all(ids.map(async (id) => (await client.runs.children({ run: id })).runs))
  return [...runs, ...(await Promise.all(children.flat().map(({ id }) => endedOrWhy(client, id, ms))))]
}

/** A run that does not end is a failure that says what it waits for. */
async function endedOrWhy(client: Client, id: string, ms: number): Promise<Run> {
  try {
    return await until(
      `the end of ${id}`,
      async () => {
        const run = await get(client, id)
        return isFinal(run.status) && run
      },
      { ms },
    )
  } catch (error) {
    const { why } = await client.runs.why({ run: id })
    throw new Error(`${(error as Error).message}\n${JSON.stringify(why, null, 1)}`, { cause: error })
  }
}

/** Holds all that is known about a run of the program `fleet` against what must be. */
export async function judge(client: Client, run: Run, toleratedMs = 0): Promise<Judged> {
  const { folder, parts } = (await client.runs.input({ run: run.id })).input as Input
  const events = await wholeLog(client, run.id)
  const notes = ledgerOf(folder, run.id)
  const overlaps = overlapsIn(notes)
  const wrong = [
    ...brokenLog({ run, events, lines: linesOf(parts) }),
    ...overlaps.filter(({ ms }) => ms > toleratedMs).map(({ text }) => text),
    ...wrongEnd(notes, run.attempt),
  ]
  const overlapMs = Math.max(0, ...overlaps.map(({ ms }) => ms))
  return { wrong: wrong.length > 0 ? [`${run.id}: ${wrong.join('; ')}`] : [], attempts: run.attempt, overlapMs }
}
