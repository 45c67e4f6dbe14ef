/** The lock of an org's limit, held as by one that has very much to do under it. */
import { pause } from '@windlass/shared/time.ts'
import { untilPolled } from './until.ts'
import type { TestCoordinator } from './coordinator-types.ts'

export interface HeldLimit {
  /** Resolves when somebody waits for it. */
  waitedFor(): Promise<void>
  isWaitedFor(): Promise<boolean>
  release(): Promise<void>
}

export async function holdLimit({ db }: Pick<TestCoordinator, 'db'>, workflowId: string): Promise<HeldLimit> {
  const [locked, done] = [Promise.withResolvers<number>(), Promise.withResolvers<void>()]
  const holding = db.begin(async (tx) => {
    await tx`select pg_advisory_xact_lock(hashtextextended(${workflowId}, 0))`
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
