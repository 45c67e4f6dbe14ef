/** Somebody else has rows of placements, and what is owed to them meanwhile. */
import type { Db, Tx } from '../../db/client.ts'
import type { TestCoordinator } from './coordinator.ts'

/** Until what it answers is called. The words of `then` are the last of that transaction. */
export async function holdPlacements(
  { db }: Pick<TestCoordinator, 'db'>,
  runs: string[],
  then: (tx: Tx) => Promise<unknown> = async () => {},
): Promise<() => Promise<void>> {
  const [isHeld, end] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const over = db.begin(async (tx) => {
    // As long as the test likes, on however slow a machine.
    await tx`set local idle_in_transaction_session_timeout = 0`
    await tx`select from placements where run_id = any(${runs}) order by run_id for update`
    isHeld.resolve()
    await end.promise
    await then(tx)
  })
  over.catch(() => {})
  await isHeld.promise
  return async () => {
    end.resolve()
    await over
  }
}

/** The runs of which a lengthening or a renewal is noted beside the placement. */
export async function owedTo(db: Db): Promise<string[]> {
  const rows = await db<{ runId: string }[]>`select run_id from lengthenings_owed order by run_id`
  return rows.map(({ runId }) => runId)
}
