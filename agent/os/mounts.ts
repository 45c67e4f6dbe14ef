import { closeSync, openSync, readlinkSync, readSync } from 'node:fs'

/** Whether it works in this folder of ours or below, and not in one that has the same path in a container. */
export function isInside(pid: number, folder: string): boolean {
  const at = link(`/proc/${pid}/cwd`)
  return (at === folder || at.startsWith(`${folder}/`)) && seesAsWeDo(pid, at)
}

/**
 * Whether a path leads a process to where it leads us. In a container of this machine it may be another folder: that of
 * the state of an agent has the same path in our image and on a host. Where nobody can tell, it is the same.
 */
export function seesAsWeDo(pid: number, file: string): boolean {
  if (link(`/proc/${pid}/ns/mnt`) === link('/proc/self/ns/mnt')) return true
  const theirs = locationOf(file, readMounts(String(pid), THEIR_BYTES))
  const ours = ourLocationOf(file)
  return theirs === undefined || ours === undefined || theirs === ours
}

/** Where a path leads us; see `locationOf`. */
export function ourLocationOf(file: string): string | undefined {
  return locationOf(file, readMounts('self', OUR_BYTES))
}

/** Far more than a container has. Reading what a program might mount, 100,000 times over, would take long. */
const THEIR_BYTES = 1024 * 1024
/** A host has a line, of some kilobytes, for each of its containers. */
const OUR_BYTES = 16 * 1024 * 1024

/** Of its namespace, and none where they are more than that. */
function readMounts(pid: string, most: number): string {
  try {
    const fd = openSync(`/proc/${pid}/mountinfo`, 'r')
    try {
      // The kernel gives out a few lines at a time.
      const bytes = Buffer.allocUnsafe(most)
      let size = 0
      for (let more = 1; more > 0 && size < bytes.length; size += more)
        more = readSync(fd, bytes, size, bytes.length - size, null)
      return size < bytes.length ? bytes.toString('utf8', 0, size) : ''
    } finally {
      closeSync(fd)
    }
  } catch {
    return ''
  }
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
  const covers = ({ point }: Mount) => below(file, point) !== undefined
  const over = mountinfo.split('\n').flatMap(parsed).filter(covers)
  const ids = new Set(over.map(({ id }) => id))
  let found: Mount | undefined
  // Each lies on the one before, whatever their order in the list: the last one is what is seen.
  for (let next = over.find(({ parent }) => !ids.has(parent)); next; next = topmost(next)) found = next
  return found && `${found.device}:${joined(found.root, below(file, found.point) ?? '')}`

  /** Of two that lie on the same one, the nearer to its root hides the other. */
  function topmost({ id: on }: Mount): Mount | undefined {
    const next = over.filter(({ id, parent }) => parent === on && id !== on)
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
