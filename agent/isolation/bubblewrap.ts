import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import path from 'node:path'
import type { Tool } from './tools.ts'

/** What a process in bubblewrap sees besides the system's own folders. All of it lies where it lies on the host. */
export interface View {
  /** Folders and files that can be read. */
  readOnly: string[]
  /** The one that can be written; /tmp is its `tmp` where that is possible. */
  workspace: string
  network: 'host' | 'none'
  /** Files to be found as /etc/passwd and /etc/group. */
  passwd: string
  group: string
}

export interface Bubblewrap extends Tool {
  /** Where only root may make user namespaces: by what it makes one for the user of the run. */
  unshare: string | undefined
}

/** User and group, as a program sees them. */
export const ID_INSIDE = 1000
/** Where bubblewrap finds the namespace that was made for it. Those before it are the program's own. */
export const NAMESPACE_FD = 9

/** Without root's name, and the same for all: what is a user of its own outside need not be told inside. */
export const PASSWD = `root:x:0:0:root:/:/sbin/nologin\nrun:x:${ID_INSIDE}:${ID_INSIDE}:run:/:/sbin/nologin\n`
export const GROUP = `root:x:0:\nrun:x:${ID_INSIDE}:\n`

/** The system as everybody may see it: programs, libraries, names, certificates. No homes, no /var, no /run, no /sys. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store']
const OF_ETC = `
  ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime timezone hosts resolv.conf host.conf gai.conf nsswitch.conf
  protocols services mime.types ca-certificates pki/tls/certs pki/ca-trust/extracted ssl/certs ssl/openssl.cnf ssl/cert.pem fonts
`
const MEMORY_BYTES = 64 * 1024 * 1024

/**
 * Arguments of `bwrap`. Not `--die-with-parent`, which a program could undo: the agent and its reaper kill its first
 * process (`Enclosure.seal`). Not `--new-session`: there is no terminal, and until that process is known all of it is
 * killed by its group.
 */
export function bubblewrapArgs(view: View, { can, unshare }: Omit<Bubblewrap, 'file'>): string[] {
  const etc = splitArguments(OF_ETC)
  return [
    unshare === undefined ? ownNamespace(can) : ['--userns', String(NAMESPACE_FD)],
    splitArguments('--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try'),
    view.network === 'none' ? ['--unshare-net'] : [],
    SYSTEM.flatMap(systemFolder),
    etc.flatMap((name) => readOnly(`/etc/${name}`)),
    ['--ro-bind', view.passwd, '/etc/passwd', '--ro-bind', view.group, '/etc/group'],
    splitArguments('--proc /proc --dev /dev'),
    memoryFolder('/dev/shm', can),
    temporary(view, can),
    view.readOnly.flatMap(readOnly),
    ['--bind', view.workspace, view.workspace],
    // Of /proc too: root without any power may still write what belongs to root, such as the settings of the kernel.
    splitArguments('--remount-ro /proc --remount-ro /dev --remount-ro / --'),
    unshare === undefined ? [] : ['/bin/sh', '-c', `exec ${NAMESPACE_FD}<&-; exec "$@"`, 'windlass'],
  ].flat()
}

function ownNamespace(can: (option: string) => boolean): string[] {
  const user = `--unshare-user --uid ${ID_INSIDE} --gid ${ID_INSIDE}`
  return splitArguments(can('--disable-userns') ? `${user} --disable-userns` : user)
}

function splitArguments(text: string): string[] {
  return text.trim().split(/\s+/)
}

function memoryFolder(folder: string, can: (option: string) => boolean): string[] {
  return [...(can('--size') ? ['--size', String(MEMORY_BYTES)] : []), '--tmpfs', folder]
}

/** The same folder that TMPDIR names, unless what it needs lies there itself. */
function temporary({ workspace, readOnly: files }: View, can: (option: string) => boolean): string[] {
  const isBelow = [workspace, ...files].some((file) => file.startsWith('/tmp/'))
  return isBelow ? memoryFolder('/tmp', can) : ['--bind', path.join(workspace, 'tmp'), '/tmp']
}

/** Where /bin is a link to /usr/bin, it is one inside too. */
function systemFolder(folder: string): string[] {
  try {
    if (lstatSync(folder).isSymbolicLink()) return ['--symlink', readlinkSync(folder), folder]
    return ['--ro-bind', folder, folder]
  } catch {
    return []
  }
}

/** A link is followed: of what lies in /run, such as the resolver's file, exactly that file is seen. */
function readOnly(file: string): string[] {
  try {
    return ['--ro-bind', realpathSync(file), file]
  } catch {
    return []
  }
}
