import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { uidsOf } from '../os/process-table.ts'
import { runTool } from '../os/run-tool.ts'
import type { UidRange } from './plan.ts'
import { toolPath } from './tools.ts'

/** A process that lives on for so long after SIGKILL waits in the kernel for something: a pause between two looks. */
export const STUCK_MS = 50

/** A folder for each file system of FUSE that there is, in any namespace; it is of the user who has mounted it. */
const CONNECTIONS = '/sys/fs/fuse/connections'

/** Users of the runs of this agent, and who hears that a file system of one of them was ended for another's run. */
export interface RunUsers extends UidRange {
  onEnded: (owner: number) => void
}

export function runUsers(
  uids: UidRange | null,
  log: (name: string, facts: { owner: number }) => void,
): RunUsers | null {
  return uids && { ...uids, onEnded: (owner) => log('isolation.file-system-ended', { owner }) }
}

/** So long has a run been stuck before file systems of others are ended for it. */
export const OTHERS_MS = 1_000

/**
 * For one who kills processes and looks again. What it returns is called with those that SIGKILL has not ended. It ends
 * the file systems of FUSE that their users have mounted, but not ours and those of root. A process that asks a file
 * system is not ended by SIGKILL: it waits in the kernel for an answer, which a thread of its own would have given that
 * is dead. Everybody may have such a file system where programs reach `/dev/fuse` and may make user namespaces.
 *
 * A program that was handed an open file of another run's may wait for that run as long as it likes. After a second
 * those that somebody waits for are ended too, where they are of this agent's runs.
 */
export function fileSystemsEnder(runs: RunUsers | null): (stuck: readonly number[]) => Promise<void> {
  let sinceMs: number | undefined
  return async (stuck) => {
    const spared = [0, process.geteuid?.()]
    const uids = new Set(stuck.flatMap(uidsOf).filter((uid) => !spared.includes(uid)))
    if (uids.size === 0 || !(await isThere())) return
    sinceMs ??= performance.now()
    const isLong = performance.now() - sinceMs > OTHERS_MS
    for (const name of namesIn(CONNECTIONS)) {
      const owner = ownerOf(name)
      if (uids.has(owner)) end(name)
      else if (isLong && isAmong(owner, runs) && isAwaited(name) && end(name)) runs.onEnded(owner)
    }
  }
}

function isAmong(uid: number, runs: RunUsers | null): runs is RunUsers {
  return runs !== null && uid >= runs.first && uid <= runs.last
}

/** Somebody waits for an answer of it. */
function isAwaited(name: string): boolean {
  try {
    return Number(readFileSync(path.join(CONNECTIONS, name, 'waiting'), 'latin1')) > 0
  } catch {
    return false
  }
}

export const MOUNT_MS = 1_000
let mounting: Promise<boolean> | undefined

/** systemd mounts it when the machine starts; others may not. */
async function isThere(): Promise<boolean> {
  if (isMounted()) return true
  if (!existsSync(CONNECTIONS)) return false
  mounting ??= mountIt().finally(() => (mounting = undefined))
  return mounting
}

async function mountIt(): Promise<boolean> {
  const exit = await runTool(toolPath('mount') ?? 'mount', ['-t', 'fusectl', 'fusectl', CONNECTIONS], MOUNT_MS)
  return 'exitCode' in exit && exit.exitCode === 0
}

const isMounted = () => readFileSync('/proc/self/mountinfo', 'utf8').includes(` ${CONNECTIONS} `)

function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    // A kernel without FUSE.
    return []
  }
}

function ownerOf(name: string): number {
  try {
    return statSync(path.join(CONNECTIONS, name)).uid
  } catch {
    // It has ended by itself.
    return 0
  }
}

function end(name: string): boolean {
  try {
    writeFileSync(path.join(CONNECTIONS, name, 'abort'), '1')
    return true
  } catch {
    // It has ended by itself, or /sys cannot be written, as in a container: there is no /dev/fuse either.
    return false
  }
}
