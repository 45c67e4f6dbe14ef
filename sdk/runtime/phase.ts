import { runtime } from './bridge.ts'
import { eventText } from './event-text.ts'
import { log } from './log.ts'
import { print } from './print.ts'

const NAME_CHARACTERS = 200

/**
 * Marks that the run has come to a new part of its work. Phases are what people see first when they look at a run.
 *
 * @param name what begins now, at most 200 characters: `'download'`
 * @param data any JSON that helps whoever reads it, at most 64 KiB, unless the service is set to another limit. A note
 *   with the size stands in place of more, and a warning in the log
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
  const host = runtime()
  if (!host) return print(undefined, `[phase] ${name}`, data)
  const bytes = Buffer.byteLength(text) - Buffer.byteLength(JSON.stringify({ name, data: 0 })) + 1
  const limitBytes = host.eventDataBytes
  if (bytes <= limitBytes) return host.emit('phase', text)
  host.emit('phase', JSON.stringify({ name, data: { truncated: true, bytes, limitBytes } }))
  const what = `data has ${bytes} bytes of JSON and was left out, as ${limitBytes} are allowed`
  log.warn(`phase('${name}', data): ${what}. Return what is large from run().`)
}
