import { ID_INSIDE, NAMESPACE_FD } from './bubblewrap.ts'

/**
 * Root may make user namespaces where others may not; if it entered one itself, its programs would be root to all
 * outside. Here the user of the run makes it, by the one of root's powers that this takes, and the namespace is that
 * user's own, which it may enter at any time. Further ones cannot be made inside. A process has to be in it until a
 * descriptor holds it; that process is gone before anything of the run begins.
 */
const MAKE = `
holder=$(
  "$1" --reuid="$3" --regid="$3" --clear-groups --no-new-privs \\
    --inh-caps=-all,+sys_admin --ambient-caps=-all,+sys_admin -- \\
    "$2" --user --map-user=${ID_INSIDE} --map-group=${ID_INSIDE} --keep-caps -- \\
    /bin/sh -c 'echo 0 >/proc/sys/user/max_user_namespaces && echo $$ && exec sleep 600 >/dev/null' &
)
[ -n "$holder" ] || exit 125
exec ${NAMESPACE_FD}<"/proc/$holder/ns/user"
kill -9 "$holder"
shift 3
exec "$@"
`

interface Tools {
  setpriv: string
  unshare: string
}

/** Words before a command, which finds the namespace at its descriptor. */
export function namespaceByRoot(uid: number, { setpriv, unshare }: Tools): string[] {
  return ['/bin/sh', '-c', MAKE, 'windlass', setpriv, unshare, String(uid)]
}
