import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { ownerAmong } from '@windlass/shared/user-ids.ts'

export type OwnUser = { user: { uid: number; gid: number } } | { user: undefined; why: string }

/**
 * User ids above those of users and their containers, and beside the range from which agents take users for runs. One
 * for each program: what is executed in one of them reads nothing of the others.
 */
const UIDS = { deploys: 699_900, judging: 699_901 }
/** Where somebody has one, the same in the other ranges that install.sh asks for. A tenth user has containers there. */
const FURTHER = [0, 1_000_000, 2_000_000, -650_000, -670_000]
const TRIAL_MS = 30_000

/**
 * A user of their own for child processes, who cannot read what is the coordinator's alone: keys, its environment, its
 * memory. Tried for real: it must reach the files that it is to run, and we must be able to end it.
 */
export async function ownUser(
  of: keyof typeof UIDS,
  files: readonly URL[],
  ownerOf: (uid: number) => string | undefined = (uid) => ownerAmong({ first: uid, last: uid }),
): Promise<OwnUser> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0)
    return { user: undefined, why: 'only a coordinator that runs as root on Linux can take one' }
  const uid = FURTHER.map((further) => UIDS[of] + further).find((each) => ownerOf(each) === undefined)
  if (uid === undefined) return { user: undefined, why: ownerOf(UIDS[of])! }
  const user = { uid, gid: uid }
  const paths = [process.execPath, ...files.map((file) => fileURLToPath(file))]
  try {
    const isReached = await tried(user, paths)
    return isReached ? { user } : { user: undefined, why: `user ${uid} cannot read ${paths.join(', or ')}` }
  } catch (error) {
    return { user: undefined, why: (error as Error).message }
  }
}

/** Shell script that says whether all files can be read, and then waits to be killed. */
const TRIAL = 'for file; do test -r "$file" || exit 1; done; echo reached; read -r end'

async function tried(user: { uid: number; gid: number }, paths: readonly string[]): Promise<boolean> {
  const child = spawn('/bin/sh', ['-c', TRIAL, 'sh', ...paths], {
    ...user,
    env: {},
    cwd: tmpdir(),
    stdio: ['pipe', 'pipe', 'ignore'],
    timeout: TRIAL_MS,
    killSignal: 'SIGKILL',
  })
  child.stdin.on('error', () => undefined)
  const ended = once(child, 'exit')
  let isReached = false
  child.stdout.once('data', () => {
    isReached = true
    child.kill('SIGKILL')
  })
  try {
    await ended
  } finally {
    // Where we may not end it, it ends with what it reads from.
    child.stdin.destroy()
  }
  return isReached
}
