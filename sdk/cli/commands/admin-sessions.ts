import type { Command } from 'commander'
import { printTable } from '../table.ts'
import { note, print, safe, timeText } from '../terminal.ts'
import { doesAdmin, lengthOf, orgOf, roleOf } from './admin-flags.ts'
import { noteEnded, stateOf } from './admin-keys.ts'

export function addAdminSessions(group: Command): void {
  addCreate(group)
  addList(group)
  addRevoke(group)
}

const LONGEST_DAYS = 30
const CREATE = 'windlass admin sessions create --org default --role owner --for 12h'

function addCreate(group: Command): void {
  const command = group
    .command('create')
    .description(
      'Make a session: a credential that may also make keys and set secrets. It is printed once and kept nowhere.',
    )
    .option('--org <slug>', 'the org that it is for')
    .option('--role <role>', 'viewer, member, admin or owner')
    .option('--for <length>', 'how long it serves: 30d at most', '12h')
    .option('--name <name>', 'what it is for; who makes it when left out')
  doesAdmin(
    command,
    CREATE,
    (flags) => ({
      org: orgOf(flags, CREATE),
      role: roleOf(flags, CREATE),
      lifeMs: lengthOf('--for', flags.for ?? '', { days: LONGEST_DAYS, example: CREATE }),
      name: flags.name,
    }),
    async ({ admin, session }, ask) => {
      const { createSession } = await import('@windlass/coordinator/admin/sessions.ts')
      const answer = await createSession(admin, { ...ask, name: ask.name ?? admin.operator.name })
      const { id, org, role, expiresAt } = answer.session
      await session.answer(answer, () => {
        print(answer.secret)
        note(`Made a session of the org ${org} with the role ${role}. It serves until ${timeText(expiresAt)}.`)
        note(`It is not shown again. To end it: windlass admin sessions revoke ${id}`)
      })
    },
  )
}

function addList(group: Command): void {
  const command = group
    .command('list')
    .description('List sessions, also those that serve no more.')
    .option('--org <slug>', 'those of one org')
  doesAdmin(
    command,
    'windlass admin sessions list --org default',
    (flags) => flags.org ?? (process.env['WINDLASS_ORG'] || undefined),
    async ({ admin, session }, org) => {
      const { listSessions } = await import('@windlass/coordinator/admin/sessions.ts')
      const sessions = await listSessions(admin, org)
      await session.answer({ sessions }, () =>
        printTable(
          ['SESSION', 'ORG', 'NAME', 'ROLE', 'STATE', 'CREATED'],
          sessions.map((s) => [s.id, s.org, s.name, s.role, stateOf(s), timeText(s.createdAt)]),
        ),
      )
    },
  )
}

function addRevoke(group: Command): void {
  const command = group
    .command('revoke')
    .description('End a session. Coordinators refuse it within a second.')
    .argument('<session>', 'its id, or the whole session')
  doesAdmin(
    command,
    'windlass admin sessions revoke ses_01m7zb27bbewwvd8r0413s5r1v',
    (_flags, [session = '']) => session,
    async ({ admin, session }, given) => {
      const { revokeSession } = await import('@windlass/coordinator/admin/sessions.ts')
      const revoked = await revokeSession(admin, given)
      await session.answer({ revoked }, () => {
        print(revoked.id)
        const name = safe(revoked.name, process.stderr)
        note(revoked.isNew ? `Revoked the session ${name}.` : `The session ${name} was revoked before.`)
        noteEnded(revoked)
      })
    },
  )
}
