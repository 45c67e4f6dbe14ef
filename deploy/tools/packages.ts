import { readFileSync } from 'node:fs'
import path from 'node:path'
import { ROOMS } from './import-rules.ts'

interface PackageJson {
  readonly name: string
  readonly exports?: Readonly<Record<string, string>>
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
}

export interface Declared {
  /** Folder of the package.json, `''` for the root. */
  readonly room: string
  readonly name: string
  readonly optional: boolean
  readonly forDevelopment: boolean
  readonly isWorkspace: boolean
}

export interface Packages {
  /** Every dependency that a package.json of the project names. */
  readonly declared: readonly Declared[]
  /** Whether a file of the room may count on the package; tests share the root's devDependencies. */
  declares(room: string, name: string, forTest: boolean): boolean
  /** Path of the project's own file behind `windlass/client`, `@windlass/shared/ids.ts`; nothing for a stranger's package. */
  resolve(specifier: string): string | undefined
}

export function readPackages(root: string): Packages {
  const rooms = ['', ...ROOMS].map((room) => ({ room, json: readPackage(path.join(root, room, 'package.json')) }))
  return describePackages(rooms)
}

export function describePackages(rooms: readonly { room: string; json: PackageJson }[]): Packages {
  const own = new Map(rooms.map(({ room, json }) => [json.name, { room, json }]))
  const declared = rooms.flatMap(({ room, json }) => dependenciesOf(room, json, own))
  const has = (room: string, name: string) => declared.some((d) => d.room === room && d.name === name)
  return {
    declared,
    // A package may name itself: that is how an example imports `windlass`.
    declares: (room, name, forTest) => own.get(name)?.room === room || has(room, name) || (forTest && has('', name)),
    resolve(specifier) {
      const name = packageName(specifier)
      const found = own.get(name)
      if (!found) return undefined
      return path.posix.join(found.room, exported(found.json, `.${specifier.slice(name.length)}`))
    },
  }
}

/** `@scope/name/file.ts` → `@scope/name`. */
export function packageName(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function dependenciesOf(room: string, json: PackageJson, own: ReadonlyMap<string, unknown>): Declared[] {
  const { dependencies = {}, devDependencies = {}, optionalDependencies = {} } = json
  const names = Object.keys({ ...dependencies, ...devDependencies, ...optionalDependencies })
  return names.map((name) => ({
    room,
    name,
    optional: name in optionalDependencies,
    forDevelopment: name in devDependencies,
    isWorkspace: own.has(name),
  }))
}

/** The file behind a subpath, by the package's own `exports`; the subpath itself where they do not say. */
function exported(json: PackageJson, subpath: string): string {
  const exact = json.exports?.[subpath]
  if (exact) return exact
  for (const [pattern, target] of Object.entries(json.exports ?? {})) {
    const [before = '', after] = pattern.split('*')
    if (after === undefined || !subpath.startsWith(before) || !subpath.endsWith(after)) continue
    return target.replace('*', subpath.slice(before.length, subpath.length - after.length))
  }
  return subpath
}

function readPackage(file: string): PackageJson {
  return JSON.parse(readFileSync(file, 'utf8')) as PackageJson
}
