import { existsSync } from 'node:fs'
import fs from 'node:fs/promises'
import { eachEntry } from '../os/each-entry.ts'
import { readOrNothing } from '../os/process-id.ts'
import { launch } from '../os/process.ts'
import { removeTree } from '../os/remove-tree.ts'
import { toolPath } from './tools.ts'

/** Where every user may leave something, besides its workspace. */
const SHARED = ['/tmp', '/var/tmp', '/dev/shm', '/run/lock']
const SYSVIPC = '/proc/sysvipc'
/** By what `ipcrm` calls them. Each table begins with a line of names. */
const TABLES = { '-m': 'shm', '-s': 'sem', '-q': 'msg' }

type IsTheirs = (uid: number) => boolean

/**
 * Removes what users of runs have left outside of their workspaces: whoever has the number next would find it, and
 * could change it as its own. Nothing of them lives any more. Answers of which of them something is still there.
 */
export async function removeTraces(isTheirs: IsTheirs): Promise<IsTheirs> {
  const staying = new Set<number>()
  const removeTheirs = async (file: Buffer) => {
    const uid = await ownerOf(file)
    if (uid !== undefined && isTheirs(uid)) await removeTree(file).catch(() => staying.add(uid))
  }
  // Not every system has all of them.
  const folders = SHARED.filter((folder) => existsSync(folder))
  const removing = folders.map((folder) => eachEntry(folder, removeTheirs))
  const removed = await Promise.allSettled([...removing, removeIpc(isTheirs)])
  const wasAllSeen = removed.every(({ status }) => status === 'fulfilled')
  return (uid) => !wasAllSeen || staying.has(uid)
}

/** Undefined: it is gone. */
async function ownerOf(file: Buffer): Promise<number | undefined> {
  try {
    return (await fs.lstat(file)).uid
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function removeIpc(isTheirs: IsTheirs): Promise<void> {
  const args = Object.entries(TABLES).flatMap(([flag, table]) => idsOf(isTheirs, table).flatMap((id) => [flag, id]))
  if (args.length === 0) return
  const file = toolPath('ipcrm') ?? 'ipcrm'
  const child = launch({ file, args, cwd: '/', env: {}, morePipes: 0, stdin: 'ignore' })
  child.stdout.resume()
  child.stderr.resume()
  const exit = await child.exited
  if ('failed' in exit || exit.exitCode !== 0) throw new Error(`${file} ${args.join(' ')} failed`)
}

function idsOf(isTheirs: IsTheirs, table: string): string[] {
  const [names = [], ...rows] = (readOrNothing(`${SYSVIPC}/${table}`) ?? '')
    .split('\n')
    .map((line) => line.trim().split(/\s+/))
  const owners = [names.indexOf('uid'), names.indexOf('cuid')]
  // The second column is the id in each of them, under names of its own.
  return rows
    .filter((row) => owners.some((at) => row[at] !== undefined && isTheirs(Number(row[at]))))
    .map((row) => row[1] ?? '')
}
