import type { Command } from 'commander'
import { printTable } from '../table.ts'
import { note, print, timeText } from '../terminal.ts'
import { doesAdmin } from './admin-flags.ts'

export function addAdminOrgs(group: Command): void {
  addCreate(group)
  addList(group)
}

function addCreate(group: Command): void {
  const command = group
    .command('create')
    .description('Make an org, with its pool `default`.')
    .argument('<slug>', 'its name in addresses: lower-case letters, digits and dashes')
    .option('--name <name>', 'what people call it; the slug when left out')
  doesAdmin(
    command,
    'windlass admin orgs create acme --name "Acme Inc."',
    ({ name }, [slug = '']) => ({ slug, name: name ?? slug }),
    async ({ admin, session }, ask) => {
      const { createOrg } = await import('@windlass/coordinator/admin/orgs.ts')
      const org = await createOrg(admin, ask)
      await session.answer({ org }, () => {
        print(`${org.slug}  ${org.id}`)
        note(`Made the org ${org.slug}, with the pool \`default\`.`)
        note(`Next: windlass admin keys create --org ${org.slug} --name <name> --role owner`)
      })
    },
  )
}

function addList(group: Command): void {
  const command = group.command('list').description('List all orgs.')
  doesAdmin(
    command,
    'windlass admin orgs list',
    () => undefined,
    async ({ admin, session }) => {
      const { listOrgs } = await import('@windlass/coordinator/admin/orgs.ts')
      const orgs = await listOrgs(admin)
      await session.answer({ orgs }, () =>
        printTable(
          ['ORG', 'NAME', 'ID', 'CREATED'],
          orgs.map((org) => [org.slug, org.name, org.id, timeText(org.createdAt)]),
        ),
      )
    },
  )
}
