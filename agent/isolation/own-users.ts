import { createHash } from 'node:crypto'
import path from 'node:path'
import { AgentRefusal } from '../exit-codes.ts'
import { folderMark } from '../os/folder-mark.ts'
import { bootId, readOrNothing } from '../os/process-id.ts'
import type { StateLock } from '../state-lock.ts'
import { writePrivately } from '../write-privately.ts'
import type { HostIsolation, UidRange } from './plan.ts'
import { probeIsolation } from './probe.ts'
import { isFree, lockUids, whyNoLocks } from './uid-lock.ts'
import { pidsOfUids } from './uids.ts'

/** What the host's owner says; `auto` leaves it to the agent whether runs get users of their own. */
export type WantedIsolation = Omit<HostIsolation, 'uids' | 'areUsersAutomatic' | 'whyNoUsers'> & {
  uids: UidRange | 'auto' | null
}

export interface OwnUsersNeeds {
  /** The state folder, which need not be there yet. */
  home: string
  execPath?: string
}

// Above what users and their containers get (a million ids hold some tens of them), and above what the installer takes.
const FIRST_UID = 701_000
const RANGE = 1000
const RANGES = 99
/** Other agents may start at the same moment. */
const TRIES = 20

/**
 * Settles which users runs have, and locks them until the agent ends. What is chosen is remembered in the state folder.
 */
export async function takeUsers(
  wanted: WantedIsolation,
  needs: OwnUsersNeeds,
): Promise<{ isolation: HostIsolation; lock: StateLock | undefined }> {
  for (let tries = TRIES; ; tries--) {
    const isolation = await settleUsers(wanted, needs)
    const { uids } = isolation
    if (!uids) return { isolation, lock: undefined }
    try {
      const lock = await lockUids(uids)
      if (isolation.areUsersAutomatic) await remember(needs.home, uids)
      return { isolation, lock }
    } catch (error) {
      // Another agent was faster: it holds the lock when we look again.
      if (!isolation.areUsersAutomatic || !(error instanceof AgentRefusal) || tries === 1) throw error
    }
  }
}

/**
 * Gives each process of a run a user of its own when the agent is root and `auto` is set: programs could read the
 * agent's key otherwise, and sign as it. Users are tried first. Where they do not work, runs execute as before, and
 * the reason is told.
 */
export async function settleUsers(wanted: WantedIsolation, needs: OwnUsersNeeds): Promise<HostIsolation> {
  const { uids } = wanted
  if (uids !== 'auto') return { ...wanted, uids }
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return { ...wanted, uids: null }
  const found = await findUsers(wanted, needs)
  if (typeof found === 'string') return { ...wanted, uids: null, whyNoUsers: found }
  return { ...wanted, uids: found, areUsersAutomatic: true }
}

const LAST_UID = FIRST_UID + RANGE * RANGES - 1
const NO_RANGE = `all user ids from ${FIRST_UID} to ${LAST_UID} belong to somebody`

async function findUsers(wanted: WantedIsolation, needs: OwnUsersNeeds): Promise<UidRange | string> {
  const trouble = whyNoLocks()
  if (trouble !== undefined) return trouble.replace(/\.$/, '')
  const range = rangeFor(needs.home)
  return range ? ((await refusalOf({ ...wanted, uids: range }, needs)) ?? range) : NO_RANGE
}

/**
 * Returns the same range at each start, unless somebody has taken it: programs that live on have users of it. Every
 * other range must have no processes: users of a container or of a directory service are in no list, and would be
 * killed.
 */
function rangeFor(home: string): UidRange | undefined {
  const start = createHash('sha256').update(path.resolve(home)).digest().readUInt32BE() % RANGES
  const ranges = Array.from({ length: RANGES }, (_, step) => rangeAt((start + step) % RANGES))
  const former = recalled(home)
  const known = ranges.find(({ first, last }) => first === former?.first && last === former.last)
  if (known && isFree(known)) return known
  return ranges.find((range) => isFree(range) && pidsOfUids(range).length === 0)
}

function rangeAt(index: number): UidRange {
  const first = FIRST_UID + index * RANGE
  return { first, last: first + RANGE - 1 }
}

const fileIn = (home: string) => path.join(home, 'uids')

/** Bound to the boot, which no process of ours survives, and to the folder: users of a copy are others. */
async function remember(home: string, { first, last }: UidRange): Promise<void> {
  await writePrivately(fileIn(home), `${first}-${last} ${bootId()} ${folderMark(home)}\n`)
}

function recalled(home: string): UidRange | undefined {
  const [, first, last, origin] = /^(\d+)-(\d+) ([^]+)\n$/.exec(readOrNothing(fileIn(home)) ?? '') ?? []
  return origin === `${bootId()} ${folderMark(home)}` ? { first: Number(first), last: Number(last) } : undefined
}

/**
 * Returns why the users do not work. The state folder is opened for passing only when it is used; what counts is the
 * way there. Whether bubblewrap works with them is tried when it is wanted.
 */
async function refusalOf(wanted: HostIsolation, { home, execPath }: OwnUsersNeeds): Promise<string | undefined> {
  const plan: HostIsolation = { ...wanted, level: 'process', network: 'host' }
  const reach = path.dirname(path.resolve(home))
  const found = await probeIsolation({ plan, home, reach, ...(execPath && { execPath }) })
  return 'refusal' in found ? found.refusal : undefined
}
