import { pause } from '@windlass/shared/time.ts'
import { signal } from '../os/end-processes.ts'
import { allPids, findAmong, findByOwner, uidsOf } from '../os/process-table.ts'
import { runTool } from '../os/run-tool.ts'
import { isDone, KILL_ALL, killUsers } from './end-users.ts'
import { fileSystemsEnder, STUCK_MS } from './fuse.ts'
import type { RunUsers } from './fuse.ts'
import type { UidRange } from './plan.ts'
import { toolPath } from './tools.ts'

/** Users for processes: each has one until nothing of it is left. */
export interface Uids {
  /** Undefined when all are in use. */
  take(): number | undefined
  areAllUsed(): boolean
  /** It is in use by a process that was not started here. */
  reserve(uid: number): void
  /** Only when nothing of that user lives any more, nor is left anywhere. */
  give(uid: number): void
}

/** Group of all runs of an agent, and of nobody else: no user has it as its own, but the only one of a range of one. */
export function groupOf({ first }: UidRange): number {
  return first
}

/** `start` says with which of them it begins. */
export function keepUids(range: UidRange, start = 0): Uids {
  const first = Math.min(groupOf(range) + 1, range.last)
  const count = range.last - first + 1
  const used = new Set<number>()
  let next = start
  return {
    take() {
      for (let tries = 0; tries < count; tries++) {
        // In turns, so that the files of one that has ended are long gone when its number comes again.
        const uid = first + (next % count)
        next += 1
        if (used.has(uid)) continue
        used.add(uid)
        return uid
      }
      return undefined
    },
    areAllUsed: () => used.size >= count,
    reserve: (uid) => void used.add(uid),
    give: (uid) => void used.delete(uid),
  }
}

/** In one go: for the start of an agent, where nothing else waits. */
export function pidsOfUids({ first, last }: UidRange): number[] {
  return allPids().filter((pid) => uidsOf(pid).some((uid) => uid >= first && uid <= last))
}

/**
 * The processes of a user of runs, who cannot become anybody else. All others on the machine are told by whose their
 * folder is: that takes a sixth of the time of reading their status.
 */
export async function findPidsOf(uid: number): Promise<number[]> {
  const pids = (await findByOwner()).get(uid)
  return pids ? findAmong(pids, (pid) => isOf(pid, uid)) : []
}

const isOf = (pid: number, uid: number) => uidsOf(pid).includes(uid)

/** The range without some of its users. */
export function without({ first, last }: UidRange, uids: readonly number[]): UidRange[] {
  const inside = uids.filter((uid) => uid >= first && uid <= last).toSorted((a, b) => a - b)
  const edges = [first - 1, ...inside, last + 1]
  const gaps = edges.slice(1).map((edge, index) => ({ first: edges[index]! + 1, last: edge - 1 }))
  return gaps.filter((gap) => gap.first <= gap.last)
}

const PROOF_MS = 5_000

/** Kills all that runs as one of these users and proves it gone. False when something is there to the end. */
export function endUids(range: UidRange, runs: RunUsers | null): Promise<boolean> {
  return range.first === range.last ? endUid(range.first, runs) : endRanges([range], runs)
}

const ALL_TRIES = 10
const ALL_MS = 10_000

/**
 * The same for all ranges at once, by a process that kills as each of their users, whether or not a look sees any.
 * Where that is impossible, what a look sees has to do.
 */
export async function endRanges(ranges: readonly UidRange[], runs: RunUsers | null): Promise<boolean> {
  if (ranges.length === 0) return true
  const killed = await killUsers(ranges, { tries: ALL_TRIES, eachMs: ALL_MS })
  const gone = await Promise.all(ranges.map((range) => endUsersSeen(range, runs)))
  return killed !== 'prevented' && gone.every(Boolean)
}

/**
 * One by one they may be made faster than they are killed, and one that forks on and on is missed by each look; a
 * user's kill of all that is its own is one act of the kernel. From then on nothing new begins: there is one look at
 * everything, and what it has found is looked at until it is gone.
 */
async function endUid(uid: number, runs: RunUsers | null): Promise<boolean> {
  const deadline = performance.now() + PROOF_MS
  const endFileSystems = fileSystemsEnder(runs)
  let pids: number[] | undefined
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 100)) {
    if (pids) pids = await findAmong(pids, (pid) => isOf(pid, uid))
    else if (await killAllOf(uid)) pids = await findPidsOf(uid)
    // Something of that user has prevented it.
    else for (const pid of await findPidsOf(uid)) signal(pid, 'SIGKILL')
    if (pids?.length === 0) return true
    if (performance.now() > deadline) return false
    if (waitMs > 2) await killAllOf(uid)
    if (waitMs > STUCK_MS) await endFileSystems(pids ?? [])
    await pause(waitMs)
  }
}

/** For those that are still seen, the same is done as for a single user. */
async function endUsersSeen(range: UidRange, runs: RunUsers | null): Promise<boolean> {
  const deadline = performance.now() + PROOF_MS
  const endFileSystems = fileSystemsEnder(runs)
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 2, 100)) {
    const pids = pidsOfUids(range)
    if (pids.length === 0) return true
    if (performance.now() > deadline) return false
    for (const pid of pids) signal(pid, 'SIGKILL')
    if (waitMs > 2) await Promise.all(usersOf(pids, range).map(killAllOf))
    if (waitMs > STUCK_MS) await endFileSystems(pids)
    await pause(waitMs)
  }
}

function usersOf(pids: number[], { first, last }: UidRange): number[] {
  return [...new Set(pids.flatMap(uidsOf))].filter((uid) => uid >= first && uid <= last)
}

const KILL_MS = 1_000
const TRIES = 4
const NODE_MS = 3_000

/**
 * Returns whether it was done, which the kernel does for all processes at once. Between the change of the user and the
 * kill a tool and a shell are executed, which takes a millisecond: those that kill whoever is to end them are faster.
 * What is certain against them comes second, as it takes ten times as long to start.
 */
async function killAllOf(uid: number): Promise<boolean> {
  if (isDone(await runToolAs(uid, ['/bin/sh', '-c', KILL_ALL], KILL_MS))) return true
  return (await killUsers([{ first: uid, last: uid }], { tries: TRIES, eachMs: NODE_MS })) === 'done'
}

/** As this user, a tool of the system. */
export function runToolAs(uid: number, command: readonly string[], deadlineMs: number): ReturnType<typeof runTool> {
  return runTool(toolPath('setpriv') ?? 'setpriv', [...asHelper(uid), ...command], deadlineMs)
}

/**
 * Arguments of `setpriv`: this user, in the agent's group. Programs of the user may trace only what has their group as
 * well: they could have it say that it has done what it was to do.
 */
export function asHelper(uid: number): string[] {
  return [`--reuid=${uid}`, `--regid=${process.getegid?.()}`, '--clear-groups', ...FOR_GOOD]
}

/** Arguments of `setpriv`: this user, in this group besides its own, and nothing else, for good. */
export function asUser(uid: number, group?: number): string[] {
  const groups = group === undefined ? '--clear-groups' : `--groups=${group}`
  return [`--reuid=${uid}`, `--regid=${uid}`, groups, ...FOR_GOOD]
}

const FOR_GOOD = ['--no-new-privs', '--bounding-set=-all', '--inh-caps=-all', '--']
