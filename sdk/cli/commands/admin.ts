import type { Command } from 'commander'
import { addAdminKeys } from './admin-keys.ts'
import { addAdminMigrate } from './admin-migrate.ts'
import { addAdminOrgs } from './admin-orgs.ts'
import { addAdminRestored } from './admin-restored.ts'
import { addAdminSecrets } from './admin-secrets.ts'
import { addAdminSessions } from './admin-sessions.ts'

const HELP = `
These commands are for whoever keeps the coordinator: they speak to its database and need no key. Each change of an org is in the
audit log under your name on this machine. Which database: --database-url, else WINDLASS_DATABASE_URL, else that of the local instance.
Example: windlass admin keys create --org default --name ci --role member --scope run:trigger,run:read --expires 90d`

/** `windlass admin`: what is done on the coordinator's host. A noun has a file here and one in coordinator/admin. */
export function addAdmin(program: Command): void {
  const group = program
    .command('admin')
    .description("On the coordinator's host: orgs, API keys and sessions, by way of its database.")
    .option('--database-url <url>', 'the database of the coordinators')
    .addHelpText('after', HELP)
  addAdminOrgs(group.command('orgs').description('The orgs of this installation: create, list.'))
  addAdminKeys(group.command('keys').description('API keys of any org: create, list, revoke.'))
  const sessions = group.command('sessions')
  addAdminSessions(sessions.description('Sessions, which may do what keys may not: create, list, revoke.'))
  const secrets = group.command('secrets')
  addAdminSecrets(secrets.description('The keys by which secrets are sealed in the database: rotate-key.'))
  addAdminMigrate(group)
  addAdminRestored(group)
}
