import type { Db } from '../../db/client.ts'
import { until } from './until.ts'

/** A poll is noted a moment after its answer: who makes a runner silent must wait for that, or it is heard of again. */
export function untilNoted({ db }: { db: Db }, ...runners: { id: string }[]): Promise<true> {
  const ids = runners.map(({ id }) => id)
  return until('the polls to be noted', async () => {
    const noted = await db`select from runners where id = any(${ids}) and last_poll_at is not null`
    return noted.length === ids.length
  })
}
