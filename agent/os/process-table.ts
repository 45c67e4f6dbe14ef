import { closeSync, type Dir, opendirSync, openSync, readdirSync, readFileSync, readSync, statSync } from 'node:fs'
import { MARKER } from './environment.ts'

/** Numbers of all processes; none where there is no /proc. */
export function allPids(): number[] {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** How long looks at processes may go on before everything else has its turn. */
const SLICE_MS = 5
let sliceEnds = 0
/** A look that meets more processes that end just then comes to no end by itself. */
const MOST_GONE = 10_000

let looking: Promise<unknown> = Promise.resolve()

/**
 * Those of all processes for which it holds. There may be many thousands, so that a look gives way: in slices, and one
 * look at a time, because those of several would stop the loop together. What has to be done with a process is
 * done where it is found, since its number may be another's by the end.
 */
export function findPids(isSought: (pid: number) => boolean): Promise<number[]> {
  return lookInTurn(() => eachPid(), isSought)
}

/** The same among these. */
export function findAmong(pids: readonly number[], isSought: (pid: number) => boolean): Promise<number[]> {
  return lookInTurn(() => pids, isSought)
}

let nextByOwner: Promise<Map<number, number[]>> | undefined

/**
 * All processes, by the user as whom they act. Whoever asks before a look has begun shares it: many runs may end at
 * once.
 */
export function findByOwner(): Promise<Map<number, number[]>> {
  return (nextByOwner ??= lookByOwner())
}

async function lookByOwner(): Promise<Map<number, number[]>> {
  const found = new Map<number, number[]>()
  const begin = () => {
    nextByOwner = undefined
    return eachPid()
  }
  await lookInTurn(begin, (pid) => {
    const owner = ownerOf(pid)
    if (owner === undefined) return false
    const pids = found.get(owner)
    if (pids) pids.push(pid)
    else found.set(owner, [pid])
    return false
  })
  return found
}

function lookInTurn(pids: () => Iterable<number>, isSought: (pid: number) => boolean): Promise<number[]> {
  const look = looking.then(() => lookInSlices(pids(), isSought))
  looking = look.catch(() => {})
  return look
}

async function lookInSlices(pids: Iterable<number>, isSought: (pid: number) => boolean): Promise<number[]> {
  const found: number[] = []
  for (const pid of pids) {
    if (performance.now() >= sliceEnds) {
      await new Promise(setImmediate)
      sliceEnds = performance.now() + SLICE_MS
    }
    if (isSought(pid)) found.push(pid)
  }
  return found
}

function* eachPid(): Iterable<number> {
  const folder = openFolder('/proc')
  try {
    for (let gone = 0; gone < MOST_GONE;) {
      const name = folder && nextName(folder)
      if (name === GONE) gone++
      else if (name === undefined) return
      else if (/^\d+$/.test(name)) yield Number(name)
    }
  } finally {
    folder?.closeSync()
  }
}

function openFolder(folder: string): Dir | undefined {
  try {
    // One at a time, at 2 µs each: Node forgets the others that it has read where one of them is gone.
    return opendirSync(folder, { bufferSize: 1 })
  } catch {
    return undefined
  }
}

const GONE = Symbol('gone')

/** Of a process that ends just then Linux does not say what its name is, and Node throws when it asks for that. */
function nextName(folder: Dir): string | typeof GONE | undefined {
  try {
    return folder.readSync()?.name
  } catch (error) {
    const { code = '' } = error as NodeJS.ErrnoException
    if (code === 'ENOENT' || code === 'ESRCH') return GONE
    throw error
  }
}

/** Whether it is a living member of a group. A zombie only waits for its parent to look: it does nothing any more. */
export function isMember(pid: number, pgid: number): boolean {
  const stat = readState(pid)
  return stat !== null && stat.pgid === pgid && !isOver(stat.state, stat.threads)
}

export function groupMembers(pgid: number): number[] {
  return allPids().filter((pid) => isMember(pid, pgid))
}

/** Where the first thread alone has ended, the process looks like a zombie, and goes on. */
const isOver = (state: string, threads: number) => (state === 'Z' || state === 'X') && threads <= 1

interface ProcessStat {
  state: string
  parent: number
  pgid: number
  threads: number
  /** Processor time, in hundredths of a second: of the process, and of its children that have ended and been reaped. */
  ticks: number
}

/** How many fields of a stat stand between the group and the first of four times; and before the number of threads. */
const UP_TO_TIMES = 8
const UP_TO_THREADS = 14

function readState(pid: number): ProcessStat | null {
  const text = read(`/proc/${pid}/stat`)
  // The name stands in brackets and may hold anything, brackets too: what counts begins behind the last one.
  const [state, parent, pgid, ...others] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const threads = Number(others[UP_TO_THREADS])
  const ticks = others.slice(UP_TO_TIMES, UP_TO_TIMES + 4).reduce((sum, each) => sum + Number(each), 0)
  return state && pgid ? { state, parent: Number(parent), pgid: Number(pgid), threads, ticks } : null
}

/** As Linux tells it to everybody, whatever its own clock is. */
const TICK_MS = 10

/** Processor time of each with all that descends from it, in milliseconds. Nothing for one that is gone. */
export async function processorMs(roots: readonly number[]): Promise<Map<number, number>> {
  const found = new Map<number, ProcessStat>()
  await findPids((pid) => {
    const stat = readState(pid)
    if (stat) found.set(pid, stat)
    return false
  })
  const sums = new Map(roots.filter((pid) => found.has(pid)).map((pid) => [pid, 0]))
  for (const [pid, { ticks }] of found) {
    const root = rootOf(pid, found, sums)
    if (root !== undefined) sums.set(root, sums.get(root)! + ticks * TICK_MS)
  }
  return sums
}

/** Parents may change while all are read: no line of them is longer than there are processes. */
function rootOf(pid: number, all: Map<number, ProcessStat>, roots: Map<number, number>): number | undefined {
  let at: number | undefined = pid
  for (let steps = 0; at !== undefined && steps < all.size; steps++, at = all.get(at)?.parent)
    if (roots.has(at)) return at
  return undefined
}

/** 0 when it is gone or cannot be seen. */
export function parentOf(pid: number): number {
  return readState(pid)?.parent ?? 0
}

/** The users it acts as: real, effective, saved and of files. None when it is gone or only waits for its parent to look. */
export function uidsOf(pid: number): number[] {
  const status = read(`/proc/${pid}/status`)
  const state = /^State:\t(.)/m.exec(status)?.[1] ?? ''
  if (isOver(state, Number(/^Threads:\t(\d+)$/m.exec(status)?.[1] ?? 0))) return []
  const line = /^Uid:\t(.+)$/m.exec(status)?.[1] ?? ''
  return line === '' ? [] : line.split('\t').map(Number)
}

/** Its number in the innermost namespace that it is in. */
export function numberInside(pid: number): number {
  const numbers = /^NSpid:\t(.+)$/m.exec(read(`/proc/${pid}/status`))?.[1]?.split('\t') ?? []
  return Number(numbers.at(-1) ?? pid)
}

/** Of its first thread; of all where the kernel keeps no list of them. */
export function childrenOf(pid: number): number[] {
  const listed = read(`/proc/${pid}/task/${pid}/children`).trim()
  return listed === '' ? allPids().filter((each) => parentOf(each) === pid) : listed.split(' ').map(Number)
}

/**
 * A program may give its processes megabytes of it, and all of them are looked at in one go: 400 with 1.8 MB each took
 * 1.6 s. Whoever hides the marker behind so much could leave it out as well.
 */
const ENVIRONMENT_BYTES = 64 * 1024

/**
 * The beginning of what a process of our own user was started with, `NAME=value` and a NUL for each. Empty for others,
 * which are told by their user: it is read from their memory, and a process may hold the lock of its memory for as long
 * as it lives (by a file of FUSE that never answers), so that whoever reads waits without an end.
 */
export function environmentOf(pid: number): string {
  return isOfOurUser(pid) ? readHead(`/proc/${pid}/environ`, ENVIRONMENT_BYTES) : ''
}

const isOfOurUser = (pid: number) => ownerOf(pid) === process.geteuid?.()

/** The user as whom it acts: the folder is that user's, also where the files in it are root's. None when it is gone. */
export function ownerOf(pid: number): number | undefined {
  try {
    return statSync(`/proc/${pid}`).uid
  } catch {
    return undefined
  }
}

/** The marker that a process was started with, itself or through an ancestor. */
export function markerOf(pid: number): string | null {
  const environment = `\0${environmentOf(pid)}`
  const from = environment.indexOf(`\0${MARKER}=`)
  if (from === -1) return null
  const start = from + MARKER.length + 2
  return environment.slice(start, environment.indexOf('\0', start))
}

// A process may end while we look at it, and others belong to other users: both read as nothing.
function read(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    return ''
  }
}

function readHead(file: string, most: number): string {
  try {
    const fd = openSync(file, 'r')
    try {
      const head = Buffer.allocUnsafe(most)
      return head.toString('latin1', 0, readSync(fd, head, 0, most, 0))
    } finally {
      closeSync(fd)
    }
  } catch {
    return ''
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder)
  } catch {
    return []
  }
}
