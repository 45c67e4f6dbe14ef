import { beginEpoch } from '../db/cluster.ts'
import type { Admin } from './open.ts'

/** Says that the database was set back. Answers the new epoch. */
export function noteRestored({ db }: Admin): Promise<string> {
  return db.begin((tx) => beginEpoch(tx))
}
