/** Locks that are held as by somebody who has very much to do under them: of an org's limit, or of a run. */
import { pause } from '@windlass/shared/time.ts'
import { untilPolled } from './until.ts'
import type { Tx } from '../../db/client.ts'
import type { TestCoordinator } from './coordinator-types.ts'

export interface HeldLock {
  /** Resolves when somebody waits for it. */
  waitedFor(): Promise<void>
  isWaitedFor(): Promise<boolean>
  release(): Promise<void>
}

type Locking = (tx: Tx) => PromiseLike<unknown>

export const holdLimit = (c: Pick<TestCoordinator, 'db'>, workflowId: string) =>
  hold(c, (tx) => tx`select pg_advisory_xact_lock(hashtextextended(${workflowId}, 0))`)

/** The row of a run. */
export const holdRun = (c: Pick<TestCoordinator, 'db'>, run: string) =>
  hold(c, (tx) => tx`select from runs where id = ${run} for update`)

async function hold({ db }: Pick<TestCoordinator, 'db'>, lock: Locking): Promise<HeldLock> {
  const [locked, done] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()]
  const holding = db.begin(async (tx) => {
    await lock(tx)
    const [row] = await tx<[{ pid: number }]>`select pg_backend_pid() as pid`
    locked.resolve(row.pid)
    // One that is idle for long is ended by the server.
    for (let isOver = false; !isOver;) {
      isOver = await Promise.race([done.promise.then(() => true), pause(1000).then(() => false)])
      await tx`select 1`
    }
  })
  const pid = await locked.promise
  const isWaitedFor = async () => {
    const rows = await db`select from pg_stat_activity where ${pid} = any(pg_blocking_pids(pid))`
    return rows.length > 0
  }
  return {
    isWaitedFor,
    waitedFor: async () => void (await untilPolled('somebody waits for the lock', isWaitedFor)),
    async release() {
      done.resolve()
      await holding
    },
  }
}
