import type { TestCoordinator } from './coordinator.ts'

/** Closes the database for writing, or opens it again, as a failover does: with new sessions. */
export async function becomeReadOnly({ db }: Pick<TestCoordinator, 'db'>, isReadOnly: boolean): Promise<void> {
  const [database] = await db<{ name: string }[]>`select current_database() as name`
  await db.begin('read write', async (tx) => {
    await tx.unsafe(`alter database "${database!.name}" set default_transaction_read_only = ${isReadOnly}`)
  })
  await db`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = ${database!.name} and pid <> pg_backend_pid()`
  await db`select pg_terminate_backend(pg_backend_pid())`.catch(() => undefined)
}
