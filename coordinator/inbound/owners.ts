import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import type { SourceOwners } from '../limits/source-gate.ts'
import { strangerReads } from '../limits/stranger-reads.ts'
import { ownersOf } from './store.ts'

type Asked = Parameters<SourceOwners['add']>[0]

/** Finds out whose a webhook or a connection is. */
export function createSourceOwners({ db, log }: { db: Db; log: Log }): SourceOwners {
  const read = (asked: readonly Asked[]) => {
    const ids = asked.map(({ id }) => id)
    return ownersOf(db, ids)
  }
  return strangerReads<Asked, string | undefined>({ name: 'read owners of sources', log, read })
}
