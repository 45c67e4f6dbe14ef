import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Loss } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'

export async function explainUnknown(db: Db, runnerId: RunnerId, what: Loss['what']): Promise<void> {
  await db`update run_losses set what = ${what} where runner_id = ${runnerId} and what = 'unknown'`
}
