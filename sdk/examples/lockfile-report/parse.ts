/** One installed copy of a package. */
export interface Package {
  /** Where it is installed, such as `node_modules/a/node_modules/b`. */
  path: string
  name: string
  version: string
  licence: string | undefined
  isDev: boolean
  isOptional: boolean
  isDirect: boolean
  hasInstallScript: boolean
  isTarball: boolean
}

export interface Lockfile {
  name: string
  lockfileVersion: number
  packages: Package[]
  workspaces: string[]
}

/** An entry of `packages` in the lockfile, as far as it is read here. */
interface Entry {
  name?: string
  version?: string
  resolved?: string
  integrity?: string
  license?: unknown
  link?: boolean
  dev?: boolean
  devOptional?: boolean
  optional?: boolean
  hasInstallScript?: boolean
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
  optionalDependencies?: Record<string, string>
}

/** Reads the text of a package-lock.json, or says what was expected in place of what was given. */
export function parseLockfile(text: string): Lockfile {
  const { name, lockfileVersion, packages } = readJson(text)
  if (typeof lockfileVersion !== 'number') throw notLockfile('it has no `lockfileVersion`')
  if (lockfileVersion < 2) {
    throw notLockfile(
      `it has lockfileVersion ${lockfileVersion}, which lists no packages: run \`npm install --package-lock-only\` ` +
        'with npm 7 or later',
    )
  }
  if (!isRecord(packages)) throw notLockfile('it has no `packages`')
  const entries = Object.entries(packages).filter((pair): pair is [string, Entry] => isRecord(pair[1]))
  const direct = directPaths(new Map(entries))
  return {
    name: typeof name === 'string' ? name : 'unnamed',
    lockfileVersion,
    packages: entries.filter(isInstalled).map(([path, entry]) => packageOf(path, entry, direct.has(path))),
    workspaces: entries.map(([path]) => path).filter(isOwnFolder),
  }
}

function readJson(text: string): Record<string, unknown> {
  if (typeof text !== 'string' || text.trim() === '') throw notLockfile('it is empty')
  if (text.includes('# yarn lockfile')) throw notLockfile('it is a yarn.lock')
  let value: unknown
  try {
    value = JSON.parse(text.replace(/^\uFEFF/, ''))
  } catch (error) {
    throw notLockfile(`it is not JSON (${error instanceof Error ? error.message : String(error)})`)
  }
  if (!isRecord(value)) throw notLockfile('it is JSON, but not an object')
  return value
}

function notLockfile(why: string): Error {
  return new Error(`input.lockfile must be the text of an npm package-lock.json of lockfileVersion 2 or 3, but ${why}.`)
}

/** The root is '', workspaces are folders; links to workspaces and all packages live in some node_modules. */
function isOwnFolder(path: string): boolean {
  return path !== '' && !`/${path}`.includes('/node_modules/')
}

// A folder deeper inside a package, which an override by `file:` leaves behind, is no package.
const PACKAGE = /(^|\/)node_modules\/(@[^/]+\/)?[^/]+$/

function isInstalled([path, entry]: [string, Entry]): boolean {
  return PACKAGE.test(path) && entry.link !== true
}

function packageOf(path: string, entry: Entry, isDirect: boolean): Package {
  return {
    path,
    // An alias is installed under another name than its own, which is then written down.
    name: entry.name ?? nameOf(path),
    version: entry.version ?? 'unknown',
    licence: licenceOf(entry.license),
    // `devOptional`: needed by dev dependencies and, optionally, by others.
    isDev: entry.dev === true || entry.devOptional === true,
    isOptional: entry.optional === true || entry.devOptional === true,
    isDirect,
    hasInstallScript: entry.hasInstallScript === true,
    // Some registries leave the address out; what was fetched has a checksum all the same.
    isTarball: entry.integrity !== undefined || /^https?:/.test(entry.resolved ?? ''),
  }
}

/** `node_modules/a/node_modules/@scope/b` → `@scope/b`. */
function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)
}

/** A string today; old packages have `{ type }` or a list of such. */
function licenceOf(given: unknown): string | undefined {
  if (typeof given === 'string') return given.trim() || undefined
  if (Array.isArray(given)) return given.map(licenceOf).filter(Boolean).join(' OR ') || undefined
  return isRecord(given) && typeof given['type'] === 'string' ? given['type'] : undefined
}

/** Paths of what the project and its workspaces name themselves, found as Node finds them: nearest folder first. */
function directPaths(entries: ReadonlyMap<string, Entry>): Set<string> {
  const found = new Set<string>()
  for (const [folder, entry] of entries) {
    if (folder !== '' && !isOwnFolder(folder)) continue
    const named = { ...entry.dependencies, ...entry.devDependencies, ...entry.optionalDependencies }
    for (const name of Object.keys(named)) {
      const path = candidates(folder, name).find((candidate) => entries.has(candidate))
      if (path !== undefined) found.add(path)
    }
  }
  return found
}

/** `apps/web`, `zod` → `apps/web/node_modules/zod`, `apps/node_modules/zod`, `node_modules/zod`. */
function candidates(folder: string, name: string): string[] {
  if (folder === '') return [`node_modules/${name}`]
  const parent = folder.includes('/') ? folder.slice(0, folder.lastIndexOf('/')) : ''
  return [`${folder}/node_modules/${name}`, ...candidates(parent, name)]
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
