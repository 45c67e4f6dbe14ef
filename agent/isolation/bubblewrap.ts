import { lstatSync, readlinkSync, realpathSync } from 'node:fs'
import path from 'node:path'

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

/** Without root's name, and the same for all: what is a user of its own outside need not be told inside. */
export const PASSWD = 'root:x:0:0:root:/:/sbin/nologin\nrun:x:1000:1000:run:/:/sbin/nologin\n'
export const GROUP = 'root:x:0:\nrun:x:1000:\n'

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
export function bubblewrapArgs(view: View, can: (option: string) => boolean): string[] {
  const etc = splitArguments(OF_ETC)
  return [
    splitArguments(
      '--unshare-user --uid 1000 --gid 1000 --unshare-pid --unshare-ipc --unshare-uts --unshare-cgroup-try',
    ),
    can('--disable-userns') ? ['--disable-userns'] : [],
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
  ].flat()
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
