import { readFileSync, statSync } from 'node:fs'
import type { Stats } from 'node:fs'
import path from 'node:path'
import { isLoopbackHost } from '@windlass/shared/loopback.ts'
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
    const file = path.join(folder, '.windlass', FILE)
    const found = read(file)
    if (!found) continue
    refuseElsewhere(file, found.url)
    return found
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

/**
 * An archive can bring along a file that is ours and readable by nobody else. What was found and not named may direct
 * us to a program of this machine only, never to a stranger's server.
 */
function refuseElsewhere(file: string, url: string): void {
  if (isLoopbackHost(new URL(url).hostname)) return
  throw new Failure(
    `${file} was found here and directs to ${url}, which may be a stranger's machine, so it is not trusted.`,
    `WINDLASS_HOME=${path.dirname(file)}, if \`npm start\` made it; or name the service: windlass profiles add`,
  )
}

const OTHERS = 0o077

/**
 * A file that was planted in a folder above ours, or came along with a checkout, must not direct us, our input, our
 * sources and our secrets to a stranger. What we write ourselves is ours and readable by nobody else, which no git
 * makes so.
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
