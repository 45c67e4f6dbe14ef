import { randomBytes } from 'node:crypto'
import { existsSync } from 'node:fs'
import { type FileHandle, link, open, readdir, readFile, realpath, rename, rm, stat } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Key, newKeyText, readKey } from './sealing.ts'

// The file of keys: a key a line, the first seals, all open. Empty lines and those that begin with `#` are for people.

const OTHERS = 0o077
const OWNER_ONLY = 0o600

export interface KeyFile {
  text: string
  keys: Key[]
  /** Differs when the file has been changed or replaced. */
  state: string
}

/** Throws an error that says what is wrong with the file and how to mend it, without its path or any of its content. */
export async function readKeyFile(path: string): Promise<KeyFile> {
  const file = await open(path, 'r').catch((error: NodeJS.ErrnoException) => {
    throw new Error(`the file of WINDLASS_SECRET_KEY_FILE cannot be read (${error.code ?? error.message})`)
  })
  try {
    const state = await stateOf(file)
    const text = await file.readFile('utf8')
    return { text, keys: keysIn(text), state }
  } finally {
    await file.close()
  }
}

/** State of the file, without reading it. Undefined when it cannot be opened; `readKeyFile` then says why. */
export async function stateOfKeyFile(path: string): Promise<string | undefined> {
  const file = await open(path, 'r').catch(() => undefined)
  try {
    return file && (await stateOf(file))
  } finally {
    await file?.close()
  }
}

async function stateOf(file: FileHandle): Promise<string> {
  const { uid, mode, ino, mtimeNs, ctimeNs, size } = await file.stat({ bigint: true })
  // As ssh does it: the file of somebody else, mounted by whoever runs the machine, is his to protect.
  if (process.getuid?.() === Number(uid) && (Number(mode) & OTHERS) !== 0)
    throw new Error(
      'the file of WINDLASS_SECRET_KEY_FILE may be read or changed by others than its owner; `chmod 600` it',
    )
  return [ino, mtimeNs, ctimeNs, size].join()
}

function keysIn(text: string): Key[] {
  const keys = new Map<string, Key>()
  for (const [index, line] of text.split('\n').entries()) {
    if (!isKeyLine(line)) continue
    const key = readKey(line.trim())
    if (!key)
      throw new Error(
        `line ${index + 1} of the file of WINDLASS_SECRET_KEY_FILE is no key: a key is 32 bytes in base64, as \`openssl rand -base64 32\` makes them`,
      )
    keys.set(key.fingerprint, key)
  }
  if (keys.size === 0) throw new Error('the file of WINDLASS_SECRET_KEY_FILE holds no key')
  return [...keys.values()]
}

function isKeyLine(line: string): boolean {
  return line.trim() !== '' && !line.trimStart().startsWith('#')
}

/** Makes the file with one new key, unless there is one. */
export async function ensureKeyFile(path: string): Promise<void> {
  // A draft beside a file that is there could be taken away meanwhile, by whoever clears those of the dead.
  if (existsSync(path)) return
  const fresh = await writeAside(path, `${HEADER}${newKeyText()}\n`)
  try {
    // In one step: a start that is killed leaves no half of a key behind, and of two starts one wins.
    await link(fresh, path)
  } catch (error) {
    // Or somebody else has made it, and has cleared what lay beside it.
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST' && !existsSync(path)) throw error
  } finally {
    await rm(fresh, { force: true })
  }
  await settle(dirname(path))
}

const HEADER = `# Keys of Windlass, by which secrets are sealed in its database: the first seals, all of them open.
# Without this file the secrets are lost. Keep a copy apart from copies of the database.
`

/** Throws when whoever changes the file has lost what gives him the right to, as by standing still for too long. */
export type StillOurs = () => PromiseLike<unknown>

/** Puts a new key on top of the file as it was read. Throws when it is not that any more. */
export async function addKey(path: string, file: KeyFile, stillOurs?: StillOurs): Promise<Key> {
  const line = newKeyText()
  const lines = file.text.split('\n')
  const first = lines.findIndex(isKeyLine)
  await replace(path, file, { text: lines.toSpliced(first, 0, line).join('\n'), stillOurs })
  return readKey(line)!
}

/**
 * Takes keys out of the file as it was read, by their fingerprints; throws when it is not that any more. Answers the
 * path of a file with these keys, which is there before they go, and stays when that fails.
 */
export async function removeKeys(
  path: string,
  file: KeyFile,
  fingerprints: readonly string[],
  stillOurs?: StillOurs,
): Promise<string> {
  const goes = (line: string) => isKeyLine(line) && fingerprints.includes(readKey(line.trim())?.fingerprint ?? '')
  const lines = file.text.split('\n')
  const aside = await keepAside(path, lines.filter(goes))
  await replace(path, file, { text: lines.filter((line) => !goes(line)).join('\n'), stillOurs })
  return aside
}

async function keepAside(path: string, keys: readonly string[]): Promise<string> {
  try {
    const target = await realpath(path)
    const text = `${RETIRED_HEADER}${keys.join('\n')}\n`
    const time = new Date().toISOString().replaceAll(/[-:]/g, '')
    const aside = `${target}.retired-${time}`
    const { uid, gid } = await stat(target)
    await writeNew(aside, text, { uid, gid, mode: OWNER_ONLY })
    await settle(dirname(aside))
    return aside
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`the keys cannot be kept beside the file of WINDLASS_SECRET_KEY_FILE (${code ?? message})`, {
      cause: error,
    })
  }
}

const RETIRED_HEADER = `# Keys of Windlass that were taken out of the file beside this one. Copies of the database
# from before need them: keep these apart from those, and remove this file when the last such copy is gone.
`

/** Another has changed the file since it was read, or may be about to. It is as he left it. */
class Overtaken extends Error {}

const OVERTAKEN = 'somebody else may have changed their file meanwhile, so this call has left it alone; call it again'

interface Replacement {
  text: string
  stillOurs: StillOurs | undefined
}

/**
 * Replaces the file if it is what was read, wherever a process stands still and for however long. Each puts its draft
 * down, removes those of all others, looks at the file and then renames the draft, which fails where it was removed. Of
 * two drafts that are both renamed, the second was put down after the first one's owner had removed others, so it was
 * put down beside the first: its owner looked when that had been renamed, and has seen it.
 */
async function replace(path: string, { text: before }: KeyFile, { text, stillOurs }: Replacement): Promise<void> {
  try {
    // Behind a link: the link stays.
    const target = await realpath(path)
    const draft = await writeAside(target, text, await stat(target))
    try {
      const others = (await findDrafts(target)).filter((other) => other !== draft)
      await Promise.all(others.map((other) => rm(other, { force: true })))
      await stillOurs?.().then(undefined, (error: unknown) => {
        throw new Overtaken(OVERTAKEN, { cause: error })
      })
      if ((await readFile(target, 'utf8')) !== before) throw new Overtaken(OVERTAKEN)
      await rename(draft, target).catch((error: NodeJS.ErrnoException) => {
        throw error.code === 'ENOENT' ? new Overtaken(OVERTAKEN, { cause: error }) : error
      })
    } catch (error) {
      await rm(draft, { force: true })
      throw error
    }
    await settle(dirname(target))
  } catch (error) {
    if (error instanceof Overtaken) throw error
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(
      `the file of WINDLASS_SECRET_KEY_FILE cannot be replaced (${code ?? message}); change it by hand where it comes from: a new key is a line on its top`,
      { cause: error },
    )
  }
}

interface Ownership {
  uid: number
  gid: number
  mode: number
}

const DRAFT = /^\.[0-9a-f]{12}\.new$/

/**
 * Files that a killed rotation has left beside that of the keys, each with all keys of then. Whoever holds the lock of
 * the keys knows that no rotation is under way to which one belongs, but for one that has lost the lock: without its
 * draft that one changes nothing.
 */
export async function findDrafts(path: string): Promise<string[]> {
  const target = await realpath(path).catch(() => undefined)
  // Where the file is gone, they may be all that is left of the keys.
  if (target === undefined) return []
  const [folder, name] = [dirname(target), basename(target)]
  const found = (await readdir(folder)).filter((each) => each.startsWith(name) && DRAFT.test(each.slice(name.length)))
  return found.map((each) => join(folder, each))
}

/** Takes the lock of the keys. Answers how many there were. */
export async function removeDrafts(path: string): Promise<number> {
  try {
    const drafts = await findDrafts(path)
    for (const draft of drafts) await rm(draft, { force: true })
    return drafts.length
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    const what = 'what a killed rotation has left beside the file of WINDLASS_SECRET_KEY_FILE cannot be removed'
    throw new Error(`${what} (${code ?? message}); remove \`<that file>.….new\` by hand`, { cause: error })
  }
}

/**
 * Writes a file beside `path`, on the disk before it is renamed: a key that secrets are sealed with must not be lost
 * with the power.
 */
async function writeAside(path: string, text: string, like?: Ownership): Promise<string> {
  const aside = `${path}.${randomBytes(6).toString('hex')}.new`
  await writeNew(aside, text, like)
  return aside
}

async function writeNew(path: string, text: string, like?: Ownership): Promise<void> {
  const file = await open(path, 'wx', OWNER_ONLY)
  try {
    if (like) await giveTo(file, like)
    await file.writeFile(text)
    await file.sync()
  } catch (error) {
    await rm(path, { force: true })
    throw error
  } finally {
    await file.close()
  }
}

/** Rotated by root, it stays readable by the coordinators. */
async function giveTo(file: FileHandle, { uid, gid, mode }: Ownership): Promise<void> {
  const own = await file.stat()
  if (own.uid !== uid || own.gid !== gid) await file.chown(uid, gid)
  await file.chmod(mode & 0o777)
}

async function settle(folder: string): Promise<void> {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}
