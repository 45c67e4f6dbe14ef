import { createHash, randomUUID } from 'node:crypto'
import { stat } from 'node:fs/promises'
import path from 'node:path'
import { z } from 'zod'
import type { Instance } from '@windlass/shared/wire/agent.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { thisHolder } from './lock-holder.ts'
import { bootId, readOrNothing } from './os/process-id.ts'
import { writePrivately } from './write-privately.ts'

/**
 * Which start of the agent this is. The coordinator takes a start that knows the one before it, so that a copy of the state folder does
 * not pass for its original.
 */
export interface ThisStart {
  readonly instance: Instance
  /** The coordinator has taken it, in this epoch of the cluster. */
  welcomed(cluster: string): Promise<void>
  /** Writes down what could not be written, as on a full disk: the next start has the same name until then. */
  save(): Promise<void>
}

/** `isWelcomed` is false as long as the coordinator may know the one before it still; then the next start goes on under the same name. */
const InstanceFile = z.object({
  id: z.string(),
  isWelcomed: z.boolean(),
  previous: z.array(z.string()),
  cluster: z.string().optional(),
})
type InstanceFile = z.output<typeof InstanceFile>

/** A database that was set back knows an earlier start than the last. */
const MOST_PREVIOUS = 2

export async function openInstance(home: string): Promise<ThisStart> {
  const file = path.join(home, 'instance.json')
  const before = read(file)
  let current = before && !before.isWelcomed ? before : next(before)
  let written = before
  let isWriting = false
  const save = async () => {
    const saving = current
    if (isWriting || saving === written) return
    isWriting = true
    try {
      await writePrivately(file, JSON.stringify(saving))
      written = saving
    } finally {
      isWriting = false
    }
  }
  await save()
  const { id, previous } = current
  const folder = await folderOf(home)
  const here = { host: await hostOf(home), ...(folder && { folder }), boot: digest(bootId()), process: randomUUID() }
  return {
    get instance() {
      return { id, previous, ...here, ...(current.cluster && { cluster: current.cluster }) }
    },
    async welcomed(cluster) {
      if (!current.isWelcomed || current.cluster !== cluster) current = { ...current, isWelcomed: true, cluster }
      await save()
    },
    save,
  }
}

function next(before: InstanceFile | undefined): InstanceFile {
  const previous = before ? [before.id, ...before.previous].slice(0, MOST_PREVIOUS) : []
  return { id: randomUUID(), isWelcomed: false, previous, ...(before?.cluster && { cluster: before.cluster }) }
}

function read(file: string): InstanceFile | undefined {
  const text = readOrNothing(file)
  if (text === undefined) return undefined
  try {
    return InstanceFile.parse(JSON.parse(text))
  } catch (error) {
    const advice = 'Restore it, or empty the folder and register again with WINDLASS_AGENT_TOKEN.'
    throw new AgentRefusal(EXIT.config, `${file} is damaged. ${advice}`, { cause: error })
  }
}

/** Containers often have none, or that of their image. */
const machineId = () => (readOrNothing('/etc/machine-id') ?? readOrNothing('/var/lib/dbus/machine-id') ?? '').trim()

/** The machine and the folder: a copy has another inode, and mostly another machine. */
export async function hostOf(home: string): Promise<string> {
  const { dev, ino } = await stat(home, { bigint: true })
  return digest(`${machineId()}/${dev}/${ino}`)
}

/** What of that stays after another boot. Without the machine it says too little: each volume begins with the same inode. */
async function folderOf(home: string): Promise<string | undefined> {
  const machine = thisHolder()?.machine
  if (!machine) return undefined
  const { ino } = await stat(home, { bigint: true })
  return digest(`${machine}/${ino}`)
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64url')
}
