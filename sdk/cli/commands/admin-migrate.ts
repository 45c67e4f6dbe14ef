import type { Command } from 'commander'
import { does } from '../session.ts'
import { note, print } from '../terminal.ts'
import { withAddress } from './admin-database.ts'
import type { AdminFlags } from './admin-flags.ts'

const MIGRATE = 'windlass admin migrate'

const HELP = `
Each start of a coordinator does the same. Call it by itself where something has to be said of the database before one
starts, as after the restore of a backup that an older version made: then \`windlass admin restored\`, and revoke what
was revoked since. Migrations that were made stay, also where a later one fails; called again it goes on.
Example: ${MIGRATE}`

/** `windlass admin migrate` */
export function addAdminMigrate(admin: Command): void {
  const command = admin
    .command('migrate')
    .description('Bring the database up to this version, without the start of a coordinator.')
    .addHelpText('after', HELP)
  does(command, async (session) => {
    const { databaseUrl: url } = command.optsWithGlobals<AdminFlags>()
    const migrations = await withAddress({ url, example: MIGRATE }, async (databaseUrl) => {
      const { migrateDatabase } = await import('@windlass/coordinator/admin/migrate.ts')
      return migrateDatabase(databaseUrl)
    })
    await session.answer({ migrations }, () => {
      for (const name of migrations) print(name)
      note(migrations.length === 0 ? 'The database was up to date.' : 'The database is up to date.')
    })
  })
}
