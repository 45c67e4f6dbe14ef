import { existsSync, lstatSync, readlinkSync, realpathSync } from 'node:fs'
import path from 'node:path'
import { type NameFiles, USER_INSIDE } from './names-inside.ts'

/** What there is of it on this host. */
export interface Bubblewrap {
  file: string
  /** Older ones lack some options. */
  can: (option: string) => boolean
  /**
   * Root makes the namespaces, where ordinary users may not, and the program becomes its user behind that. Nobody is
   * root in there who is root outside: that would be so for the whole host, which sees through a namespace of users.
   */
  isByRoot: boolean
}

/**
 * What a process in bubblewrap sees besides the system's own folders. All of it lies where it lies on the host, but for
 * the files that are found as /etc/passwd and /etc/group.
 */
export interface View extends NameFiles {
  /** Folders and files that can be read. */
  readOnly: string[]
  /** The one that can be written; /tmp is its `tmp` where that is possible. */
  workspace: string
  network: 'host' | 'none'
}

/** The system as everybody may see it: programs, libraries, names, certificates. No homes, no /var, no /run, no /sys. */
const SYSTEM = ['/usr', '/bin', '/sbin', '/lib', '/lib32', '/lib64', '/libx32', '/nix/store']
const OF_ETC = `
  ld.so.cache ld.so.conf ld.so.conf.d alternatives localtime timezone hosts resolv.conf host.conf gai.conf nsswitch.conf
  protocols services mime.types ca-certificates pki/tls/certs pki/ca-trust/extracted ssl/certs ssl/openssl.cnf ssl/cert.pem fonts
`
const MEMORY_BYTES = 64 * 1024 * 1024

/**
 * Arguments of `bwrap`. Not `--die-with-parent`: the agent and its reaper kill, and know what they kill. Not `--new-session`:
 * there is no terminal, and its first process has to stay in the group by which all of it is killed.
 */
export function bubblewrapArgs(view: View, { can, isByRoot }: Omit<Bubblewrap, 'file'>): string[] {
  const etc = splitArguments(OF_ETC).map((name) => `/etc/${name}`)
  const parents = (files: readonly string[]) => (isByRoot ? parentsOf(files) : [])
  return [
    isByRoot ? POWERS_OF_SETPRIV : ownNamespace(can),
    splitArguments('--unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try'),
    view.network === 'none' ? ['--unshare-net'] : [],
    parents([...SYSTEM.filter(existsSync), ...etc]),
    SYSTEM.flatMap(systemFolder),
    etc.flatMap(readOnly),
    ['--ro-bind', view.passwd, '/etc/passwd', '--ro-bind', view.group, '/etc/group'],
    splitArguments('--proc /proc --dev /dev'),
    memoryFolder('/dev/shm', { can, isByRoot }),
    temporary(view, { can, isByRoot }),
    parents([view.workspace, ...view.readOnly]),
    view.readOnly.flatMap(readOnly),
    ['--bind', view.workspace, view.workspace],
    // Of /proc too: root without any power may still write what belongs to root, such as the settings of the kernel.
    splitArguments('--remount-ro /proc --remount-ro /dev --remount-ro / --'),
  ].flat()
}

function ownNamespace(can: Bubblewrap['can']): string[] {
  const user = ['--unshare-user', '--uid', String(USER_INSIDE), '--gid', String(USER_INSIDE)]
  return can('--disable-userns') ? [...user, '--disable-userns'] : user
}

const POWERS_OF_SETPRIV = splitArguments(
  '--cap-drop ALL --cap-add CAP_SETUID --cap-add CAP_SETGID --cap-add CAP_SETPCAP',
)

/** Bubblewrap closes those that it makes itself to all but who makes them. */
function parentsOf(files: readonly string[]): string[] {
  const parents = new Set<string>()
  for (const file of files)
    for (let at = path.dirname(file); at !== path.dirname(at); at = path.dirname(at)) parents.add(at)
  // Those of the system are there, and so is what is bound.
  const made = [...parents].filter((folder) => !SYSTEM.some((each) => folder === each || folder.startsWith(`${each}/`)))
  return made.toSorted((a, b) => a.length - b.length).flatMap((folder) => ['--perms', '0755', '--dir', folder])
}

function splitArguments(text: string): string[] {
  return text.trim().split(/\s+/)
}

function memoryFolder(folder: string, { can, isByRoot }: Omit<Bubblewrap, 'file'>): string[] {
  const size = can('--size') ? ['--size', String(MEMORY_BYTES)] : []
  return [...(isByRoot ? ['--perms', '1777'] : []), ...size, '--tmpfs', folder]
}

/** The same folder that TMPDIR names, unless what it needs lies there itself. */
function temporary({ workspace, readOnly: files }: View, bubblewrap: Omit<Bubblewrap, 'file'>): string[] {
  const isBelow = [workspace, ...files].some((file) => file.startsWith('/tmp/'))
  return isBelow ? memoryFolder('/tmp', bubblewrap) : ['--bind', path.join(workspace, 'tmp'), '/tmp']
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
