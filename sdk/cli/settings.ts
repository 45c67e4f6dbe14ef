import { checkedUrl } from './checked-url.ts'
import { Failure } from './failure.ts'
import { localInstance, TWO_WAYS } from './local-instance.ts'
import type { ServiceAccess } from './local-instance.ts'
import { LOCAL, profileNamed, readProfiles } from './profiles.ts'

/** Which service, as whom, in which org, and from where that is known. */
export interface Settings extends ServiceAccess {
  /** `profile prod`, `the local instance`, `flags and environment`. */
  from: string
}

/** What was typed before or after any command. */
export interface GlobalFlags {
  url?: string
  apiKey?: string
  session?: string
  org?: string
  profile?: string
  json?: boolean
}

interface Known extends ServiceAccess {
  from: string
}

/**
 * Flags before environment before the chosen profile before the local instance, each value by itself. The credentials
 * of a profile and of the local instance are for their own address: no other one ever sees them.
 */
export function settingsFrom(flags: GlobalFlags, env: NodeJS.ProcessEnv = process.env, cwd = process.cwd()): Settings {
  const given = givenBy(flags, env)
  if (given.url !== undefined && given.apiKey !== undefined && given.org !== undefined && flags.profile === undefined)
    return { ...given, url: given.url, from: 'flags and environment' }
  const known = knownAccess(flags, env, cwd, given.url)
  if (known) return over(given, known)
  if (given.url !== undefined) return { ...given, url: given.url, from: 'flags and environment' }
  throw new Failure('No service is named, and no local instance was found.', TWO_WAYS)
}

type Given = Omit<ServiceAccess, 'url'> & { url: string | undefined }

/**
 * A key of the environment is meant for a service that its owner has in mind. Which instance is found, whoever made the
 * folder decides, and on a machine of several users a stranger may listen at its address.
 */
function refuseKeyWithoutAddress(flags: GlobalFlags, env: NodeJS.ProcessEnv, { url }: ServiceAccess): void {
  if (flags.profile !== undefined || env['WINDLASS_HOME']) return
  const keys = { WINDLASS_API_KEY: flags.apiKey, WINDLASS_SESSION: flags.session }
  const name = Object.entries(keys).find(([variable, flag]) => flag === undefined && env[variable])?.[0]
  if (name === undefined) return
  throw new Failure(
    `${name} is set and no address beside it: it is not sent to the instance that was found here, ${url}.`,
    `set WINDLASS_URL to the address it is for, or unset ${name}`,
  )
}

/** Who names a profile by a flag means all of it: the environment does not mix with it. */
function givenBy(flags: GlobalFlags, env: NodeJS.ProcessEnv): Given {
  const from = (name: string) => (flags.profile === undefined ? env[name] || undefined : undefined)
  const url = flags.url ?? from('WINDLASS_URL')
  return {
    url: url === undefined ? undefined : checkedUrl(url),
    apiKey: flags.apiKey ?? from('WINDLASS_API_KEY'),
    session: flags.session ?? from('WINDLASS_SESSION'),
    org: flags.org ?? from('WINDLASS_ORG'),
  }
}

/** The first known place; where an address is given, the one of that address. */
function knownAccess(
  flags: GlobalFlags,
  env: NodeJS.ProcessEnv,
  cwd: string,
  url: string | undefined,
): Known | undefined {
  const profile = chosenProfile(flags, env)
  if (profile && profile !== LOCAL && (url === undefined || profile.url === url)) return profile
  const local = localInstance(env, cwd)
  if (local && url === undefined) refuseKeyWithoutAddress(flags, env, local)
  if (local && (url === undefined || local.url === url)) return { ...local, from: 'the local instance' }
  if (profile === LOCAL && url === undefined)
    throw new Failure('No local instance was found from here.', 'npm start in the project starts one')
  return undefined
}

function chosenProfile(flags: GlobalFlags, env: NodeJS.ProcessEnv): Known | typeof LOCAL | undefined {
  const named = flags.profile ?? (env['WINDLASS_PROFILE'] || undefined)
  // WINDLASS_HOME names an instance too, and the environment goes before what was chosen for good.
  if (named === undefined && env['WINDLASS_HOME']) return undefined
  const profiles = named === LOCAL ? undefined : readProfiles(env)
  const name = named ?? profiles?.current
  if (name === undefined || name === LOCAL || !profiles) return name === LOCAL ? LOCAL : undefined
  return { ...profileNamed(profiles, name), from: `profile ${name}` }
}

function over(given: Given, known: Known): Settings {
  return {
    url: known.url,
    apiKey: given.apiKey ?? known.apiKey,
    // Who gives a key means to act by that key, and not as somebody else where it does not suffice.
    session: given.session ?? (given.apiKey === undefined ? known.session : undefined),
    org: given.org ?? known.org,
    from: known.from,
  }
}
