import type { Command } from 'commander'
import { note, print } from '../terminal.ts'
import { doesAdmin } from './admin-flags.ts'

const RESTORED = 'windlass admin restored'

const HELP = `
Call it with all coordinators stopped, after the database was set back by a snapshot of its disk or a physical backup.
A dump that was restored into another database is noticed without it. Agents then end what they execute, and those runs
start again as the database has them. Until each has ended what it held, 75 s by default and as long as the pool's
\`reassignAfterMs\` where that is set, no run is given out; with \`--agents-stopped\` they are given out at once.
Example: ${RESTORED}`

/** `windlass admin restored` */
export function addAdminRestored(admin: Command): void {
  const command = admin
    .command('restored')
    .description('Say that the database was set back to an earlier state.')
    .option('--agents-stopped', 'All agents were stopped as well, and executed nothing since: give runs out at once.')
    .addHelpText('after', HELP)
  doesAdmin(
    command,
    RESTORED,
    () => ({ areAgentsStopped: command.opts<{ agentsStopped?: true }>().agentsStopped ?? false }),
    async ({ admin: opened, session }, asked) => {
      const { noteRestored } = await import('@windlass/coordinator/admin/cluster.ts')
      const epoch = await noteRestored(opened, asked)
      await session.answer({ epoch }, () => {
        print(epoch)
        note('The epoch of the cluster has changed. Start the coordinators now.')
      })
    },
  )
}
