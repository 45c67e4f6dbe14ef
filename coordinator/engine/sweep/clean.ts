import type { Db } from '../../db/client.ts'
import * as throttles from '../store/throttles.ts'

/** Throttles that delay nobody any more. */
export async function cleanWaits({ db }: { db: Db }): Promise<void> {
  await throttles.clean(db)
}
