import { chmodSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { checkedUrl } from './checked-url.ts'
import { EXIT } from './exit-codes.ts'
import { Failure } from './failure.ts'
import { refuseForeign } from './local-instance.ts'
import type { ServiceAccess } from './local-instance.ts'

/** A name for a service, with the credentials for it. */
export interface Profile {
  url: string
  org?: string
  apiKey?: string
  session?: string
}

export interface Profiles {
  /** The one that is meant where none is named. */
  current?: string
  profiles: Record<string, Profile>
}

/** Stands for the local instance wherever a profile is named. */
export const LOCAL = 'local'

const NAME = /^[A-Za-z0-9][\w.-]{0,62}$/

/** WINDLASS_CONFIG, or where the system keeps settings of a person. None without a home folder. */
export function configFile(env: NodeJS.ProcessEnv): string | undefined {
  if (env['WINDLASS_CONFIG']) return path.resolve(env['WINDLASS_CONFIG'])
  const { XDG_CONFIG_HOME: xdg, HOME: home } = env
  const folder = xdg && path.isAbsolute(xdg) ? xdg : home && path.join(home, '.config')
  return folder ? path.join(folder, 'windlass', 'config.json') : undefined
}

export function readProfiles(env: NodeJS.ProcessEnv): Profiles {
  const file = configFile(env)
  const found = file === undefined ? undefined : statSync(file, { throwIfNoEntry: false })
  if (file === undefined || !found) return { profiles: {} }
  refuseForeign(file, found)
  return parse(file)
}

/** Whole or not at all, and never readable by others, not even for a moment. */
export function writeProfiles(env: NodeJS.ProcessEnv, profiles: Profiles): string {
  const file = configFile(env)
  if (file === undefined)
    throw new Failure('There is no home folder to keep profiles in.', 'name a file by WINDLASS_CONFIG')
  mkdirSync(path.dirname(file), { recursive: true, mode: 0o700 })
  const fresh = `${file}.${process.pid}.new`
  rmSync(fresh, { force: true })
  writeFileSync(fresh, `${JSON.stringify(profiles, null, 2)}\n`, { mode: 0o600, flag: 'wx' })
  chmodSync(fresh, 0o600)
  renameSync(fresh, file)
  return file
}

/** The profile of this name, or a refusal that names those that are there. */
export function profileNamed({ profiles }: Profiles, name: string): ServiceAccess {
  const found = Object.hasOwn(profiles, name) ? profiles[name] : undefined
  if (found) return { url: found.url, org: found.org, apiKey: found.apiKey, session: found.session }
  throw new Failure(
    `There is no profile \`${name}\`${didYouMean(name, Object.keys(profiles)) || '.'}`,
    'windlass profiles list, or windlass profiles add <name> --url <url>',
    EXIT.refused,
    'NOT_FOUND',
  )
}

export function checkedName(name: string): string {
  if (NAME.test(name) && name !== LOCAL && name !== '__proto__') return name
  const why = name === LOCAL ? 'means the local instance' : 'is no name for a profile'
  throw new Failure(`\`${name}\` ${why}.`, 'take letters, digits and . _ - such as `staging`')
}

function parse(file: string): Profiles {
  const content = contentOf(file)
  const { current, profiles } = (content ?? {}) as { current?: unknown; profiles?: unknown }
  if (typeof profiles !== 'object' || profiles === null) throw broken(file, 'it has no `profiles`')
  const read = Object.entries(profiles).map(([name, profile]) => [name, checked(file, name, profile)] as const)
  return {
    ...(typeof current === 'string' && { current }),
    profiles: Object.fromEntries(read),
  }
}

function checked(file: string, name: string, profile: unknown): Profile {
  const { url, org, apiKey, session } = (profile ?? {}) as Record<string, unknown>
  if (typeof url !== 'string') throw broken(file, `the profile ${name} has no \`url\``)
  return {
    url: checkedUrl(url),
    ...(typeof org === 'string' && { org }),
    ...(typeof apiKey === 'string' && { apiKey }),
    ...(typeof session === 'string' && { session }),
  }
}

function contentOf(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as unknown
  } catch (error) {
    throw broken(file, error instanceof Error ? error.message : String(error))
  }
}

function broken(file: string, why: string): Failure {
  return new Failure(`${file} cannot be used: ${why}.`, `mend or remove it, then windlass profiles add <name>`)
}
