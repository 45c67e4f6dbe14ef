import { readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { Failure } from './failure.ts'

/** Which service, as whom, in which org. */
export interface Settings {
  url: string
  apiKey: string | undefined
  org: string | undefined
}

/** What was typed before or after any command. */
export interface GlobalFlags {
  url?: string
  apiKey?: string
  org?: string
  json?: boolean
}

const TWO_WAYS =
  'run `npm start` in the project, whose address and key are then found by themselves, or name a service: --url and --api-key, or WINDLASS_URL and WINDLASS_API_KEY'

/** Flags before environment before the local instance, each value by itself. */
export function settingsFrom(flags: GlobalFlags, env: NodeJS.ProcessEnv = process.env, cwd = process.cwd()): Settings {
  const given = {
    url: flags.url ?? (env['WINDLASS_URL'] || undefined),
    apiKey: flags.apiKey ?? (env['WINDLASS_API_KEY'] || undefined),
    org: flags.org ?? (env['WINDLASS_ORG'] || undefined),
  }
  if (given.url !== undefined) given.url = checkedUrl(given.url)
  if (given.url !== undefined && given.apiKey !== undefined && given.org !== undefined)
    return { ...given, url: given.url }
  const local = localInstance(env, cwd)
  // The key of the local instance is for the local instance; no other address ever sees it.
  if (given.url !== undefined && given.url !== local?.url) return { ...given, url: given.url }
  if (!local) throw new Failure('No service is named, and no local instance was found.', TWO_WAYS)
  return { url: local.url, apiKey: given.apiKey ?? local.apiKey, org: given.org ?? local.org }
}

function checkedUrl(url: string): string {
  const parsed = URL.parse(url)
  if (parsed && /^https?:$/.test(parsed.protocol)) return url.replace(/\/+$/, '')
  throw new Failure(
    `\`${url}\` is not an http or https address.`,
    'give --url or WINDLASS_URL such as http://127.0.0.1:8787',
  )
}

interface LocalInstance {
  url: string
  org: string
  apiKey: string
}

const FILE = 'cli.json'

/** What `npm start` left in its home: WINDLASS_HOME, or the nearest `.windlass` from here upwards. */
function localInstance(env: NodeJS.ProcessEnv, cwd: string): LocalInstance | undefined {
  const home = env['WINDLASS_HOME']
  if (home) return read(path.resolve(cwd, home, FILE))
  for (const folder of upwards(cwd)) {
    const found = read(path.join(folder, '.windlass', FILE))
    if (found) return found
  }
  return undefined
}

function upwards(from: string): string[] {
  const parent = path.dirname(from)
  return parent === from ? [from] : [from, ...upwards(parent)]
}

function read(file: string): LocalInstance | undefined {
  const owner = statSync(file, { throwIfNoEntry: false })?.uid
  if (owner === undefined) return undefined
  refuseForeign(file, owner)
  const instance = parse(file) as Partial<LocalInstance> | null
  const { url, org, apiKey } = instance ?? {}
  if (typeof url === 'string' && typeof org === 'string' && typeof apiKey === 'string')
    return { url: checkedUrl(url), org, apiKey }
  throw broken(file, 'it lacks `url`, `org` or `apiKey`')
}

/** A file planted in a folder above ours must not direct us, our input and our sources to a stranger. */
function refuseForeign(file: string, owner: number): void {
  const me = process.getuid?.()
  if (me === undefined || owner === me || owner === 0 || me === 0) return
  throw new Failure(`${file} belongs to another user, so it is not trusted.`, TWO_WAYS)
}

function parse(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    throw broken(file, error instanceof Error ? error.message : String(error))
  }
}

function broken(file: string, why: string): Failure {
  return new Failure(
    `${file} cannot be used: ${why}.`,
    'stop the local instance and run `npm start` again, which writes it anew',
  )
}
