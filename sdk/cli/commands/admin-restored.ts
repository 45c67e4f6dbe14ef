import type { Command } from 'commander'
import { note, print } from '../terminal.ts'
import { doesAdmin } from './admin-flags.ts'

const RESTORED = 'windlass admin restored'

const HELP = `
Call it with all coordinators stopped, after the database was set back by a snapshot of its disk or a physical backup.
A dump that was restored into another database is noticed without it. Agents then end what they execute, and those runs
start again as the database has them.
Example: ${RESTORED}`

/** `windlass admin restored` */
export function addAdminRestored(admin: Command): void {
  const command = admin
    .command('restored')
    .description('Say that the database was set back to an earlier state.')
    .addHelpText('after', HELP)
  doesAdmin(
    command,
    RESTORED,
    () => undefined,
    async ({ admin: opened, session }) => {
      const { noteRestored } = await import('@windlass/coordinator/admin/cluster.ts')
      const epoch = await noteRestored(opened)
      await session.answer({ epoch }, () => {
        print(epoch)
        note('The epoch of the cluster has changed. Start the coordinators now.')
      })
    },
  )
}
