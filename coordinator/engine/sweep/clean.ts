import type { Db } from '../../db/client.ts'
import * as debounces from '../store/debounces.ts'
import * as throttles from '../store/throttles.ts'

/** Throttles that delay nobody any more, and debounces whose run waits no more. */
export async function cleanWaits({ db }: { db: Db }): Promise<void> {
  // Each whatever becomes of the other.
  const cleaned = await Promise.allSettled([throttles.clean(db), debounces.clean(db)])
  for (const each of cleaned) if (each.status === 'rejected') throw each.reason
}
