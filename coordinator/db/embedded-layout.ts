/**
 * Where the embedded server's files are, and as which account it runs.
 *
 * Under root PostgreSQL must run as another account, and that account cannot enter a home below /root or one that is 0700
 * itself. It need not: the process is started *inside* its data folder (the folder is entered before root is given up) and
 * calls it `/proc/self/cwd`; its socket folder is `../socket` from there. No folder above `<home>/postgres` is looked up, so
 * data, socket and password stay in the home, whatever its mode. Only the binaries need a readable path (embedded-program.ts).
 */
import { createHash } from 'node:crypto'
import { chmod, chown, lstat, mkdir, readFile, realpath, rmdir, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Account {
  uid: number
  gid: number
}

export interface Layout {
  /** `<home>/postgres`. */
  root: string
  data: string
  /** The folder of the unix socket, as clients reach it. */
  socket: string
  passwordFile: string
  logFile: string
  supervisorFile: string
  /** Set when the server must run as another account than ours. */
  account: Account | undefined
  /** The same two folders as the server itself names them. */
  seenByServer: { data: string; socket: string }
}

// sun_path holds 108 bytes with its closing zero.
const LONGEST_SOCKET_PATH = 107
const SOCKET_FILE = '.s.PGSQL.5432'

export async function prepareLayout(home: string): Promise<Layout> {
  await mkdir(home, { recursive: true, mode: 0o700 })
  const root = join(await realpath(home), 'postgres')
  await mkdir(root, { recursive: true })
  const data = join(root, 'data')
  const account = await chooseAccount(data)
  // The server's account needs to pass through here from data to socket, not to read or write.
  await chmod(root, account ? 0o711 : 0o700)
  const socket = await prepareSocketFolder(root, account)
  const throughProc = account !== undefined && process.platform === 'linux'
  return {
    root,
    data,
    socket,
    account,
    passwordFile: join(root, 'password'),
    logFile: join(root, 'postgres.log'),
    supervisorFile: join(root, 'supervisor.json'),
    seenByServer: {
      data: throughProc ? '/proc/self/cwd' : data,
      socket: throughProc && socket.startsWith(root) ? '../socket' : socket,
    },
  }
}

/** A socket folder in the temp folder is shared ground and goes with the server; one in the home stays. */
export async function removeSocketFolder(layout: Layout) {
  if (!layout.socket.startsWith(layout.root)) await ignoring(['ENOENT', 'ENOTEMPTY'], rmdir(layout.socket))
}

/** A folder that only the server's account may use. */
export async function privateFolder(folder: string, account: Account | undefined) {
  const made = await mkdir(folder, { recursive: true, mode: 0o700 })
  if (made && account) await chown(folder, account.uid, account.gid)
}

/** Runs to the end, or fails in one of the ways that are fine here. */
export async function ignoring<T>(codes: string[], work: Promise<T>): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (error instanceof Error && 'code' in error && codes.includes(String(error.code))) return undefined
    throw error
  }
}

async function prepareSocketFolder(root: string, account: Account | undefined): Promise<string> {
  const near = join(root, 'socket')
  if (fits(near)) {
    await privateFolder(near, account)
    return near
  }
  const name = `windlass-${createHash('sha256').update(root).digest('hex').slice(0, 16)}`
  const far = [tmpdir(), '/tmp'].map((folder) => join(folder, name)).find(fits) ?? join('/tmp', name)
  await privateFolder(far, account)
  // Anybody may make folders in the temp folder: one that is not the server's own would hand out its socket.
  const owner = account?.uid ?? process.getuid?.() ?? 0
  const found = await lstat(far)
  if (!found.isDirectory() || found.uid !== owner || (found.mode & 0o077) !== 0) {
    throw new Error(
      `${far} is needed for PostgreSQL's socket but belongs to somebody else: remove it, or set WINDLASS_HOME to a shorter path.`,
    )
  }
  return far
}

function fits(folder: string): boolean {
  return Buffer.byteLength(join(folder, SOCKET_FILE)) <= LONGEST_SOCKET_PATH
}

/** Undefined: run it as ourselves. The owner of existing data comes first, or a new account on the machine would lock it out. */
async function chooseAccount(data: string): Promise<Account | undefined> {
  const owned = await ignoring(['ENOENT'], stat(data))
  const self = process.getuid?.()
  if (self !== 0) {
    if (owned && owned.uid !== self) {
      throw new Error(
        `${data} belongs to user ${owned.uid}, this process runs as user ${self}: start Windlass as that user or as root, or set WINDLASS_HOME to another folder.`,
      )
    }
    return undefined
  }
  if (owned && owned.uid !== 0) return { uid: owned.uid, gid: owned.gid }
  const passwd = await readFile('/etc/passwd', 'utf8')
  for (const name of ['postgres', 'nobody']) {
    const fields = passwd
      .split('\n')
      .find((line) => line.startsWith(`${name}:`))
      ?.split(':')
    if (fields?.[2] && fields[3]) return { uid: Number(fields[2]), gid: Number(fields[3]) }
  }
  throw new Error(
    'PostgreSQL does not run as root, and /etc/passwd has neither a "postgres" nor a "nobody" user: add one, start Windlass as an ordinary user, or set WINDLASS_DATABASE_URL.',
  )
}
