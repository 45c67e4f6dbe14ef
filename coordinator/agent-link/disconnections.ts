import type { Db } from '../db/client.ts'
import { type Disconnection, noteDisconnections } from './store.ts'

export type { Disconnection }

/** What ended together is noted together: a coordinator that stops lets go of all its agents at once. */
export async function commitDisconnections(db: Db, ended: Disconnection[]): Promise<void[]> {
  await noteDisconnections(db, ended)
  return ended.map(() => undefined)
}
