import { mkdirSync, readdirSync } from 'node:fs'
import { rmdir } from 'node:fs/promises'
import path from 'node:path'
import { AgentRefusal, EXIT } from '../exit-codes.ts'
import { isAlive, readOrNothing } from '../process-id.ts'
import type { ProcessMark } from '../process-id.ts'
import { lockState } from '../state-lock.ts'
import type { StateLock } from '../state-lock.ts'
import type { UidRange } from './plan.ts'

/** Of the machine as a whole, and gone at its next boot. Only root has such users to give. */
const LOCKS = '/run/windlass-uids'
const NAME = /^(\d+)-(\d+)$/

/** Two agents with the same users would kill each other's runs, and let them read one another. */
export async function lockUids(range: UidRange): Promise<StateLock> {
  const folder = path.join(LOCKS, `${range.first}-${range.last}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  for (const name of readdirSync(LOCKS)) {
    const holder = overlaps(name, range) ? holderOf(path.join(LOCKS, name)) : undefined
    if (holder && holder.pid !== process.pid) throw inUse(range, holder)
  }
  const lock = await lockState(folder)
  return {
    async release() {
      await lock.release()
      // Another agent may be about to take it.
      await rmdir(folder).catch(() => {})
    },
  }
}

function overlaps(name: string, { first, last }: UidRange): boolean {
  const [, from, to] = NAME.exec(name) ?? []
  return Number(from) <= last && Number(to) >= first
}

function holderOf(folder: string): ProcessMark | undefined {
  const text = readOrNothing(path.join(folder, 'agent.lock'))
  if (!text) return undefined
  const mark = JSON.parse(text) as ProcessMark
  return isAlive(mark) ? mark : undefined
}

function inUse({ first, last }: UidRange, holder: ProcessMark): AgentRefusal {
  return new AgentRefusal(
    EXIT.config,
    `User ids of ${first}-${last} belong to the runs of another agent, process ${holder.pid}. Give this one a range of its own with WINDLASS_AGENT_RUN_UIDS.`,
  )
}
