import type { Command } from 'commander'
import type { ApiKey } from '@windlass/shared/model/api-key.ts'
import { printTable } from '../table.ts'
import { note, print, safe, timeText } from '../terminal.ts'
import { type AdminFlags, doesAdmin, lengthOf, listed, needed, orgOf, roleOf, scopesOf } from './admin-flags.ts'

export function addAdminKeys(group: Command): void {
  addCreate(group)
  addList(group)
  addRevoke(group)
}

const CREATE =
  'windlass admin keys create --org default --name ci --role member --scope run:trigger,run:read --expires 90d'

function addCreate(group: Command): void {
  const command = group
    .command('create')
    .description('Make an API key. It is printed once and kept nowhere.')
    .option('--org <slug>', 'the org that it belongs to')
    .option('--name <name>', 'what it is for')
    .option('--role <role>', 'viewer, member, admin or owner')
    .option(
      '--scope <list>',
      'exactly what it may do, comma-separated or given again; all of the role when left out',
      listed,
    )
    .option('--expires <length>', 'after so long, such as 90d; never when left out')
  doesAdmin(
    command,
    CREATE,
    (flags) => ({
      org: orgOf(flags, CREATE),
      name: needed('--name', flags.name, CREATE),
      role: roleOf(flags, CREATE),
      scopes: scopesOf(flags, CREATE),
      expiresAt: expiryOf(flags),
    }),
    async ({ admin, session }, ask) => {
      const { createKey } = await import('@windlass/coordinator/admin/keys.ts')
      const answer = await createKey(admin, ask)
      await session.answer(answer, () => {
        print(answer.key)
        note(madeText(answer.apiKey))
        note(`It is not shown again. To end it: windlass admin keys revoke ${answer.apiKey.id}`)
      })
    },
  )
}

/** A hundred years. */
const LONGEST_DAYS = 36_500

function expiryOf({ expires }: AdminFlags): number | undefined {
  if (expires === undefined) return undefined
  return Date.now() + lengthOf('--expires', expires, { days: LONGEST_DAYS, example: CREATE })
}

function madeText({ name, org, role, scopes, expiresAt }: ApiKey): string {
  const may = scopes.length === 0 ? `everything that the role ${role} may` : `${scopes.join(', ')} as ${role}`
  const until = expiresAt === null ? 'does not expire' : `expires ${timeText(expiresAt)}`
  return `Made the API key ${name} of the org ${org}: it may do ${may}, and ${until}.`
}

const LIST = 'windlass admin keys list --org default'

function addList(group: Command): void {
  const command = group
    .command('list')
    .description('List the API keys of an org, also those that serve no more.')
    .option('--org <slug>', 'the org')
  doesAdmin(
    command,
    LIST,
    (flags) => orgOf(flags, LIST),
    async ({ admin, session }, org) => {
      const { listKeys } = await import('@windlass/coordinator/admin/keys.ts')
      const apiKeys = await listKeys(admin, org)
      await session.answer({ apiKeys }, () =>
        printTable(
          ['KEY', 'STARTS WITH', 'NAME', 'ROLE', 'SCOPES', 'STATE', 'LAST USED'],
          apiKeys.map((k) => [
            k.id,
            k.prefix,
            k.name,
            k.role,
            k.scopes.join(', ') || 'all',
            stateOf(k),
            timeText(k.lastUsedAt),
          ]),
        ),
      )
    },
  )
}

/** For keys and sessions alike. */
export function stateOf({ revokedAt, expiresAt }: { revokedAt: number | null; expiresAt: number | null }): string {
  if (revokedAt !== null) return `revoked ${timeText(revokedAt)}`
  if (expiresAt === null) return 'serves'
  return expiresAt <= Date.now() ? `expired ${timeText(expiresAt)}` : `serves until ${timeText(expiresAt)}`
}

function addRevoke(group: Command): void {
  const command = group
    .command('revoke')
    .description('End an API key for good. Coordinators refuse it within a second.')
    .argument('<key>', 'its id, or the whole key')
  doesAdmin(
    command,
    'windlass admin keys revoke key_01m7zb1z8sewwt0f3mr1xje8yj',
    (_flags, [key = '']) => key,
    async ({ admin, session }, key) => {
      const { revokeKey } = await import('@windlass/coordinator/admin/keys.ts')
      const revoked = await revokeKey(admin, key)
      await session.answer({ revoked }, () => {
        print(revoked.id)
        const name = safe(revoked.name, process.stderr)
        note(revoked.isNew ? `Revoked the API key ${name}.` : `The API key ${name} was revoked before.`)
        noteEnded(revoked)
      })
    },
  )
}

/** For keys and sessions alike. */
export function noteEnded({ registrationTokens, jobs }: { registrationTokens: number; jobs: number }): void {
  if (registrationTokens > 0) note(`Registration tokens that it has made are revoked: ${registrationTokens}.`)
  if (jobs > 0) note(`Bulk jobs that it had under way are cancelled: ${jobs}.`)
}
