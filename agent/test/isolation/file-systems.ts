import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import type { TestContext } from 'node:test'
import { asUser, endUids } from '../../isolation/uids.ts'
import { NEEDS_ROOT } from './requirements.ts'

const mayHaveNamespaces = spawnSync('unshare', ['-Urm', 'true']).status === 0

/** Why a test of file systems of FUSE that programs make cannot be had here; false where it can. */
export const NEEDS_FUSE =
  NEEDS_ROOT ||
  (!existsSync('/dev/fuse') && 'it needs /dev/fuse') ||
  (!mayHaveNamespaces && 'it needs user namespaces for everybody')

/** Of this user, with a file system of FUSE in that folder: its descriptor 3 serves it. */
export function withFileSystem(uid: number, folder: string, command: readonly string[]): string[] {
  return ['setpriv', ...asUser(uid), ...onFileSystem(folder, command)]
}

/** The same of the user who executes it. */
export function onFileSystem(folder: string, command: readonly string[]): string[] {
  const options = 'fd=3,rootmode=40000,user_id=0,group_id=0'
  const mount = `exec 3<>/dev/fuse && mount -i -t fuse -o ${options} none "$0" && exec "$@"`
  return ['unshare', '-Urm', 'sh', '-c', mount, folder, ...command]
}

const GUARD_S = 30

/**
 * Ends the file systems of that user after a while: else what fails here would wait for ever. Answers whether it did;
 * `mark` is a file that is not there yet.
 */
export function guardFileSystems(t: TestContext, uid: number, mark: string): () => boolean {
  const abort = `[ "$(stat -c %u "$each")" != ${uid} ] || echo 1 > "$each/abort"`
  const script = `sleep ${GUARD_S}; : > "$0"; for each in /sys/fs/fuse/connections/*; do ${abort}; done`
  const guard = spawn('sh', ['-c', script, mark], { stdio: 'ignore', detached: true })
  t.after(() => existsSync(mark) || process.kill(-guard.pid!, 'SIGKILL'))
  return () => existsSync(mark)
}

const SERVER = path.join(import.meta.dirname, '../programs/asks-itself-over-fuse.mjs')

export interface Awaited {
  /** Its folder, as this process reaches it. Its lock is held for as long as the waiter waits. */
  folder: string
}

/**
 * One that SIGKILL does not end: it waits for a file system that is another user's, who lives. The file system does not
 * end with that user, as somebody else has its descriptor too.
 */
export async function aWaiter(t: TestContext, { owner, waiter }: { owner: number; waiter: number }): Promise<Awaited> {
  const folder = mkdtempSync(path.join(aHome(t), 'fuse-'))
  const options = `fd=3,rootmode=40000,user_id=${owner},group_id=${owner},allow_other`
  const serve = `setpriv ${asUser(owner).join(' ')} "$2" "$3"`
  const ask = `setpriv ${asUser(waiter).join(' ')} stat "$1/nothing" 3<&-`
  const mount = `exec 3<>/dev/fuse && mount -i -t fuse -o ${options} none "$1" && { ${serve} & ${ask} & wait; }`
  const child = spawn('unshare', ['-m', 'sh', '-c', mount, 'sh', folder, process.execPath, SERVER], {
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.after(() => endUids({ first: owner, last: owner }, null))
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return { folder: `/proc/${child.pid}/root${folder}` }
}

export function aHome(t: TestContext): string {
  const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-fuse-'))
  chmodSync(home, 0o755)
  t.after(() => rmSync(home, { recursive: true, force: true }))
  return home
}
