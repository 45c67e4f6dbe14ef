import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { uidsOf } from '../os/process-table.ts'
import { runTool } from '../os/run-tool.ts'
import { toolPath } from './tools.ts'

/** A process that lives on for so long after SIGKILL waits in the kernel for something: a pause between two looks. */
export const STUCK_MS = 50

/** A folder for each file system of FUSE that there is, in any namespace; it is of the user who has mounted it. */
const CONNECTIONS = '/sys/fs/fuse/connections'

/**
 * Ends the file systems of FUSE that the users of these processes have mounted, but not ours and those of root. A
 * process that asks a file system of its own is not ended by SIGKILL: it waits in the kernel for a thread of its own
 * that is dead. Everybody may have such a file system where programs reach `/dev/fuse` and may make user namespaces.
 */
export async function endFileSystemsOf(pids: readonly number[]): Promise<void> {
  const spared = [0, process.geteuid?.()]
  const uids = new Set(pids.flatMap(uidsOf).filter((uid) => !spared.includes(uid)))
  if (uids.size === 0 || !(await isThere())) return
  for (const name of namesIn(CONNECTIONS)) if (uids.has(ownerOf(name))) end(name)
}

const MOUNT_MS = 1_000
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

function end(name: string): void {
  try {
    writeFileSync(path.join(CONNECTIONS, name, 'abort'), '1')
  } catch {
    // It has ended by itself, or /sys cannot be written, as in a container: there is no /dev/fuse either.
  }
}
