import { runtime } from './bridge.ts'
import { eventText } from './event-text.ts'
import { print } from './print.ts'

const NAME_CHARACTERS = 200
// The whole event; name and wrapping take their part of it.
const EVENT_BYTES = 64 * 1024
const DATA_BYTES = 60 * 1024

/**
 * Marks that the run has come to a new part of its work. Phases are what people see first when they look at a run.
 *
 * @param name what begins now, at most 200 characters: `'download'`
 * @param data any JSON that helps whoever reads it, at most 60 KiB
 * @example
 * import { phase } from 'windlass'
 *
 * export async function run(input: { urls: string[] }) {
 *   phase('download', { count: input.urls.length })
 *   const pages = await Promise.all(input.urls.map((url) => fetch(url)))
 *   phase('report')
 *   return pages.map((page) => page.status)
 * }
 */
export function phase(name: string, data?: unknown): void {
  if (typeof name !== 'string' || name === '' || name.length > NAME_CHARACTERS) {
    throw new TypeError(`phase(name): name is a text of 1 to ${NAME_CHARACTERS} characters.`)
  }
  const text = eventText(data === undefined ? { name } : { name, data })
  if (text === null)
    throw new TypeError(`phase('${name}', data): data is not JSON. Leave out bigints and circular references.`)
  const bytes = Buffer.byteLength(text)
  if (bytes > EVENT_BYTES) {
    throw new TypeError(
      `phase('${name}', data): data is ${bytes} bytes of JSON, ${DATA_BYTES} at most. Return what is large from run().`,
    )
  }
  const host = runtime()
  if (host) host.emit('phase', text)
  else print(undefined, `[phase] ${name}`, data)
}
