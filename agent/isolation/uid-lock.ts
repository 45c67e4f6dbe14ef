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

/**
 * Two agents with the same users would kill each other's runs, and let them read one another. Whatever else runs as one of them would be
 * killed as well.
 */
export async function lockUids(range: UidRange): Promise<StateLock> {
  const owner = ownerAmong(range)
  if (owner !== undefined) throw new AgentRefusal(EXIT.config, `${owner} ${advice(range)}`)
  const folder = path.join(LOCKS, `${range.first}-${range.last}`)
  mkdirSync(folder, { recursive: true, mode: 0o700 })
  refuseOverlap(range)
  const lock = await lockState(folder)
  try {
    // Another agent may have looked at the same moment, when neither had its lock.
    refuseOverlap(range)
  } catch (error) {
    await lock.release()
    throw error
  }
  return {
    async release() {
      await lock.release()
      // Another agent may be about to take it.
      await rmdir(folder).catch(() => {})
    },
  }
}

function refuseOverlap(range: UidRange): void {
  for (const name of readdirSync(LOCKS)) {
    const holder = overlaps(name, range) ? holderOf(path.join(LOCKS, name)) : undefined
    if (holder && holder.pid !== process.pid) throw inUse(range, holder)
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

function inUse(range: UidRange, holder: ProcessMark): AgentRefusal {
  const message = `User ids of ${range.first}-${range.last} belong to the runs of another agent, process ${holder.pid}.`
  return new AgentRefusal(EXIT.config, `${message} ${advice(range)}`)
}

const advice = ({ first, last }: UidRange) =>
  `Give this agent a range of its own instead of ${first}-${last} with WINDLASS_AGENT_RUN_UIDS.`

interface Registries {
  passwd: string
  subuid: string
}

const REGISTRIES: Registries = { passwd: '/etc/passwd', subuid: '/etc/subuid' }

/** Who has one of these ids already: a user of this machine, or the containers of one. Users of a directory service are not seen. */
export function ownerAmong({ first, last }: UidRange, { passwd, subuid } = REGISTRIES): string | undefined {
  for (const [name, , uid] of fieldsIn(passwd))
    if (Number(uid) >= first && Number(uid) <= last) return `User id ${uid} belongs to ${name} (${passwd}).`
  for (const [name, from, count] of fieldsIn(subuid)) {
    const end = Number(from) + Number(count) - 1
    if (Number(from) <= last && end >= first)
      return `User ids ${from}-${end} belong to containers of ${name} (${subuid}).`
  }
  return undefined
}

function fieldsIn(file: string): string[][] {
  const lines = (readOrNothing(file) ?? '').split('\n')
  return lines.filter((line) => line.includes(':') && !line.startsWith('#')).map((line) => line.split(':'))
}
