import { closeSync, openSync, readdirSync, readFileSync, readlinkSync, readSync, statSync } from 'node:fs'
import { MARKER } from './environment.ts'

/** Numbers of all processes; none where there is no /proc. */
export function allPids(): number[] {
  return list('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
}

/** Living members of a process group. A zombie only waits for its parent to look: it does nothing any more. */
export function groupMembers(pgid: number): number[] {
  return allPids().filter((pid) => {
    const stat = readState(pid)
    return stat !== null && stat.pgid === pgid && !isOver(stat.state, stat.threads)
  })
}

/** Where the first thread alone has ended, the process looks like a zombie, and goes on. */
const isOver = (state: string, threads: number) => (state === 'Z' || state === 'X') && threads <= 1

interface ProcessStat {
  state: string
  parent: number
  pgid: number
  threads: number
}

/** How many fields of a stat stand between the group and the number of threads. */
const UP_TO_THREADS = 14

function readState(pid: number): ProcessStat | null {
  const text = read(`/proc/${pid}/stat`)
  // The name stands in brackets and may hold anything, brackets too: what counts begins behind the last one.
  const [state, parent, pgid, ...others] = text.slice(text.lastIndexOf(')') + 2).split(' ')
  const threads = Number(others[UP_TO_THREADS])
  return state && pgid ? { state, parent: Number(parent), pgid: Number(pgid), threads } : null
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

export function childrenOf(pid: number): number[] {
  return allPids().filter((each) => parentOf(each) === pid)
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

function isOfOurUser(pid: number): boolean {
  try {
    // The folder is of the user as whom it acts, also where the files in it are root's.
    return statSync(`/proc/${pid}`).uid === process.geteuid?.()
  } catch {
    return false
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

export function isInside(pid: number, folder: string): boolean {
  const at = link(`/proc/${pid}/cwd`)
  return at === folder || at.startsWith(`${folder}/`)
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

function link(file: string): string {
  try {
    return readlinkSync(file)
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
