import { lstatSync, readdirSync } from 'node:fs'
import path from 'node:path'
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
 * Removes what users of runs have left outside of their workspaces: whoever has the number next would find it, and could change it as its
 * own. Nothing of them lives any more. False when something is still there.
 */
export async function removeTraces(isTheirs: IsTheirs): Promise<boolean> {
  const files = SHARED.flatMap((folder) => filesOf(isTheirs, folder))
  const removed = await Promise.allSettled([...files.map(removeTree), removeIpc(isTheirs)])
  return removed.every(({ status }) => status === 'fulfilled')
}

function filesOf(isTheirs: IsTheirs, folder: string): string[] {
  const files = namesIn(folder).map((name) => path.join(folder, name))
  return files.filter((file) => {
    const stat = lstatSync(file, { throwIfNoEntry: false })
    return stat !== undefined && isTheirs(stat.uid)
  })
}

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // Not every system has all of them.
    return []
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
