import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import { groupCommit } from '../db/group-commit.ts'
import type { SourceOwners } from '../limits/source-gate.ts'
import { ownersOf } from './store.ts'

const MOST = 500

/** Finds out whose a webhook or a connection is. By its id, which anybody may send, from however many networks. */
export function createSourceOwners({ db, log }: { db: Db; log: Log }): SourceOwners {
  return groupCommit<Parameters<SourceOwners['add']>[0], string | undefined>({
    name: 'read owners of sources',
    log,
    orgOf: ({ network }) => network,
    // Whoever only reads is told at once that the database is away.
    patienceMs: 0,
    max: MOST,
    commit: (asked) =>
      ownersOf(
        db,
        asked.map(({ id }) => id),
      ),
  })
}
