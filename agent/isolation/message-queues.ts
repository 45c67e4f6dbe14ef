import { existsSync, mkdirSync, statfsSync } from 'node:fs'
import { runTool } from '../os/run-tool.ts'
import { toolPath } from './tools.ts'

/** Where systems and containers mount them. Programs make and read queues also where nobody has. */
export const QUEUES = '/dev/mqueue'
const SETTINGS = '/proc/sys/fs/mqueue'
const MQUEUE_MAGIC = 0x19800202
const MOUNT_MS = 1_000

let opening: Promise<boolean> | undefined

/** Whether POSIX message queues can be seen as files. Tried once: what the agent may not mount now it may not later. */
export function openQueues(): Promise<boolean> {
  opening ??= mountThem()
  return opening
}

async function mountThem(): Promise<boolean> {
  if (areThere()) return true
  if (!existsSync(SETTINGS) || process.geteuid?.() !== 0) return false
  try {
    mkdirSync(QUEUES, { recursive: true })
  } catch {
    // A `/dev` that is read-only.
    return false
  }
  await runTool(toolPath('mount') ?? 'mount', ['-t', 'mqueue', '-o', 'nosuid,nodev,noexec', 'mqueue', QUEUES], MOUNT_MS)
  return areThere()
}

function areThere(): boolean {
  try {
    return statfsSync(QUEUES).type === MQUEUE_MAGIC
  } catch {
    return false
  }
}
