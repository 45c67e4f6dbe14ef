import { readFileSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import path from 'node:path'
import { checkedUrl } from './checked-url.ts'
import { Failure } from './failure.ts'

/** A service, and by what one is known there. The credentials are for this address alone. */
export interface ServiceAccess {
  url: string
  org: string | undefined
  apiKey: string | undefined
  session: string | undefined
}

export const TWO_WAYS =
  'run `npm start` in the project, whose address and key are then found by themselves, or name a service: ' +
  '`windlass profiles add`, or --url and --api-key, or WINDLASS_URL and WINDLASS_API_KEY'

const FILE = 'cli.json'

/** What `npm start` left in its home: WINDLASS_HOME, or the nearest `.windlass` from here upwards. */
export function localInstance(env: NodeJS.ProcessEnv, cwd: string): ServiceAccess | undefined {
  const home = env['WINDLASS_HOME']
  if (home) return read(path.resolve(cwd, home, FILE))
  for (const folder of upwards(cwd)) {
    const found = read(path.join(folder, '.windlass', FILE))
    if (found) return found
  }
  return undefined
}

export function upwards(from: string): string[] {
  const parent = path.dirname(from)
  return parent === from ? [from] : [from, ...upwards(parent)]
}

function read(file: string): ServiceAccess | undefined {
  const found = statSync(file, { throwIfNoEntry: false })
  if (!found) return undefined
  refuseForeign(file, found)
  const instance = parse(file) as Partial<ServiceAccess> | null
  const { url, org, apiKey, session } = instance ?? {}
  if (typeof url === 'string' && typeof org === 'string' && typeof apiKey === 'string')
    return { url: checkedUrl(url), org, apiKey, session: typeof session === 'string' ? session : undefined }
  throw broken(file, 'it lacks `url`, `org` or `apiKey`')
}

const OTHERS = 0o077

/**
 * A file that was planted in a folder above ours, or came along with a checkout, must not direct us, our input, our
 * sources and our secrets to a stranger. What we write ourselves is ours and readable by nobody else, which no archive
 * and no git makes so.
 */
export function refuseForeign(file: string, { uid, mode }: Stats): void {
  const me = process.getuid?.()
  if (me === undefined) return
  if (uid !== me && uid !== 0 && me !== 0)
    throw new Failure(`${file} belongs to another user, so it is not trusted.`, TWO_WAYS)
  if (mode & OTHERS)
    throw new Failure(
      `${file} holds keys and directs where they are sent, and others may read or write it, so it is not trusted.`,
      `chmod 600 ${file}, if it is your own`,
    )
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
