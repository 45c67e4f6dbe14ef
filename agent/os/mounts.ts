import { closeSync, openSync, readlinkSync, readSync } from 'node:fs'
import { ownerAmong } from '@windlass/shared/user-ids.ts'
import { ownerOf } from './process-table.ts'

/** A look keeps their lists, of up to 1 MiB each. */
const MOST_NAMESPACES = 8
/** In a look. Whoever is in one sees what is below it alone, and anybody may have thousands of them. */
const MOST_CHROOTS = 8

/**
 * Where paths lead other processes, for one look at all of them. What is read of a namespace serves all processes in
 * it that have one root: any user may put thousands into one with many mounts, to keep us busy.
 */
export class MountViews {
  readonly #known = new Map<string, MountView>()
  readonly #own = link('/proc/self/ns/mnt')
  #mine: MountView | undefined
  readonly #areStrangers = new Map<number, boolean>()
  #chroots = 0

  /** Whether it works in this folder of ours or below, and not in one that has the same path in a container. */
  isInside(pid: number, folder: string): boolean {
    const at = link(`/proc/${pid}/cwd`)
    if (at !== folder && !at.startsWith(`${folder}/`)) return false
    // Within a namespace the kernel says where it works as we would call it.
    return this.#isOurs(pid) || (!this.#isOfStranger(pid) && this.#leadsToOurs(pid, at))
  }

  /**
   * Whether a path leads a process to where it leads us. In a container of this machine it may be another folder: that
   * of the state of an agent has the same path in our image and on a host. Where nobody can tell, it is the same.
   */
  seesAsWeDo(pid: number, file: string): boolean {
    if (!this.#isOurs(pid)) return this.#leadsToOurs(pid, file)
    const root = link(`/proc/${pid}/root`)
    if (root === link('/proc/self/root')) return true
    // In a chroot that shares our mounts.
    return isSame(this.#ours().of(joined(root, file.slice(1))), this.#ours().of(file))
  }

  #isOurs(pid: number): boolean {
    return link(`/proc/${pid}/ns/mnt`) === this.#own
  }

  /**
   * Nobody who has an account here, nor a container of such a one, is a user of runs. Each of them may have mounts that
   * the kernel reads for seconds, as it passes over those outside of a process's root: 1.5 s for 18,000.
   */
  #isOfStranger(pid: number): boolean {
    const owner = ownerOf(pid)
    if (owner === undefined || owner === process.geteuid?.()) return false
    const known = this.#areStrangers.get(owner)
    if (known !== undefined) return known
    const isStranger = ownerAmong({ first: owner, last: owner }) !== undefined
    this.#areStrangers.set(owner, isStranger)
    return isStranger
  }

  #leadsToOurs(pid: number, file: string): boolean {
    return isSame(this.#viewOf(pid).of(file), this.#ours().of(file))
  }

  #ours(): MountView {
    return (this.#mine ??= new MountView(readMounts('self', OUR_BYTES)))
  }

  #viewOf(pid: number): MountView {
    const root = link(`/proc/${pid}/root`)
    const seen = `${link(`/proc/${pid}/ns/mnt`)} ${root}`
    const known = this.#known.get(seen)
    if (known) return known
    if (root !== '/' && this.#chroots++ >= MOST_CHROOTS) return new MountView(undefined)
    const text = readMounts(String(pid), THEIR_BYTES, THEIR_MOUNTS)
    const view = new MountView(text)
    // Of one that has just ended nothing is read, which says nothing of the others.
    if (text === undefined) return view
    const [oldest] = this.#known.size < MOST_NAMESPACES ? [] : this.#known.keys()
    if (oldest !== undefined) this.#known.delete(oldest)
    this.#known.set(seen, view)
    return view
  }
}

class MountView {
  readonly #mounts: readonly Mount[]
  /** Most processes of a namespace are asked for one folder. */
  #last: { file: string; location: string | undefined } | undefined

  constructor(mountinfo: string | undefined) {
    this.#mounts = mountsIn(mountinfo ?? '')
  }

  /** Where a path leads whoever is in it; see `locationOf`. */
  of(file: string): string | undefined {
    if (this.#last?.file !== file) this.#last = { file, location: locationIn(this.#mounts, file) }
    return this.#last.location
  }
}

const isSame = (theirs: string | undefined, ours: string | undefined) =>
  theirs === undefined || ours === undefined || theirs === ours

/** Where a path leads us; see `locationOf`. */
export function ourLocationOf(file: string): string | undefined {
  return locationOf(file, readMounts('self', OUR_BYTES) ?? '')
}

/**
 * Far more than a container has. The kernel follows each to the root, through all that lie below it: for 9,000, one
 * over the other, that takes more than a second.
 */
const THEIR_MOUNTS = 1000
const THEIR_BYTES = 1024 * 1024
/** A host has a line, of some kilobytes, for each of its containers. */
const OUR_BYTES = 16 * 1024 * 1024

/** Of its namespace, and none where they are more than that. Undefined where they cannot be read. */
function readMounts(pid: string, mostBytes: number, mostLines = Number.POSITIVE_INFINITY): string | undefined {
  try {
    const fd = openSync(`/proc/${pid}/mountinfo`, 'r')
    try {
      // The kernel gives out a few lines at a time.
      const bytes = Buffer.allocUnsafe(mostBytes)
      let [size, lines] = [0, 0]
      for (let more = 1; more > 0 && size < bytes.length && lines <= mostLines; size += more) {
        more = readSync(fd, bytes, size, bytes.length - size, null)
        lines += countIn(bytes.subarray(size, size + more), LINE_BREAK)
      }
      return size < bytes.length && lines <= mostLines ? bytes.toString('utf8', 0, size) : ''
    } finally {
      closeSync(fd)
    }
  } catch {
    return undefined
  }
}

const LINE_BREAK = 0x0a

function countIn(bytes: Buffer, sought: number): number {
  let count = 0
  for (const byte of bytes) if (byte === sought) count++
  return count
}

interface Mount {
  id: string
  parent: string
  device: string
  /** What of the file system is mounted, and where. */
  root: string
  point: string
}

/**
 * Where a path leads whoever has these mounts (/proc/PID/mountinfo): a device, and the path on it. Two who see the same
 * folder are told the same, whatever it is called where they are. Undefined where the mounts do not say it. No file
 * system is asked: one of FUSE may never answer.
 */
export function locationOf(file: string, mountinfo: string): string | undefined {
  return locationIn(mountsIn(mountinfo), file)
}

const mountsIn = (mountinfo: string) => mountinfo.split('\n').flatMap(parsed)

function locationIn(mounts: readonly Mount[], file: string): string | undefined {
  const over = mounts.filter(({ point }) => below(file, point) !== undefined)
  const ids = new Set(over.map(({ id }) => id))
  const on = Map.groupBy(over, ({ parent }) => parent)
  let found: Mount | undefined
  // Each lies on the one before, whatever their order in the list: the last one is what is seen.
  for (let next = over.find(({ parent }) => !ids.has(parent)); next; next = topmost(next)) found = next
  return found && `${found.device}:${joined(found.root, below(file, found.point) ?? '')}`

  /** Of two that lie on the same one, the nearer to its root hides the other. */
  function topmost({ id: lower }: Mount): Mount | undefined {
    const next = (on.get(lower) ?? []).filter(({ id }) => id !== lower)
    return next.toSorted((one, other) => one.point.length - other.point.length)[0]
  }
}

function parsed(line: string): Mount[] {
  const [id, parent, device, root, point] = line.split(' ')
  if (!id || !parent || !device || root === undefined || point === undefined) return []
  return [{ id, parent, device, root: unescaped(root), point: unescaped(point) }]
}

/** Spaces, among others, are written in octal. */
function unescaped(text: string): string {
  return text.replace(/\\(\d{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))
}

function below(file: string, folder: string): string | undefined {
  if (file === folder) return ''
  const parent = folder === '/' ? '/' : `${folder}/`
  return file.startsWith(parent) ? file.slice(parent.length) : undefined
}

function joined(folder: string, rest: string): string {
  if (rest === '') return folder
  return folder === '/' ? `/${rest}` : `${folder}/${rest}`
}

function link(file: string): string {
  try {
    return readlinkSync(file)
  } catch {
    return ''
  }
}
