import { kebab } from './fields.ts'
import { schemaText } from './schema-text.ts'
import { bytesText, lengthText, timeText } from './terminal.ts'

/** How a time is shown: shorter in a table. */
export type TimeText = (at: number | null) => string

/** `{path}`, `{path:format}`, `{path|what stands there where it is empty}`. */
const FIELD = /\{([\w.]+)(?::(\w+))?(?:\|([^}]*))?\}/g

/** A list of more is cut: `--json` has all of it. */
const MOST_ITEMS = 20
const MOST_JSON = 200

/** A text of a row with its fields filled in. Undefined where one of them is empty and has no other text. */
export function filled(text: string, from: object, time: TimeText = timeText): string | undefined {
  let isWhole = true
  const whole = text.replace(FIELD, (_, path: string, format: string | undefined, other: string | undefined) => {
    const value = valueAt(path, from)
    const shown = isEmpty(value) || (value === '' && other !== undefined) ? other : formatted(value, path, format, time)
    isWhole &&= shown !== undefined
    return shown ?? ''
  })
  return isWhole ? whole : undefined
}

/** The same of a column or a line of fields, where a path may stand by itself: `pool.name`. */
export function filledField(text: string, from: object, time?: TimeText): string | undefined {
  return filled(text.includes('{') ? text : `{${text}}`, from, time)
}

/** Whether a field of a text is 0: what counts something has nothing to say then. */
export function countsNothing(text: string, from: object): boolean {
  return [...text.matchAll(FIELD)].some(([, path = '']) => valueAt(path, from) === 0)
}

/** A line for each label; `settings.*` makes one for each member. */
export function fieldLines(fields: Readonly<Record<string, string>>, from: object): [name: string, value: string][] {
  return Object.entries(fields).flatMap(([label, text]) => {
    const [, path, format] = /^([\w.]+)\.\*(?::(\w+))?$/.exec(text) ?? []
    if (path !== undefined) return memberLines(label, valueAt(path, from), format)
    const value = filledField(text, from)
    return value === undefined || value === '' ? [] : [[label, value]]
  })
}

function memberLines(label: string, value: unknown, format?: string): [name: string, value: string][] {
  if (Array.isArray(value)) return value.map((each) => [label, formatted(each, label, format)])
  return Object.entries(value ?? {}).flatMap(([name, member]: [string, unknown]) => {
    if (isObject(member)) return memberLines(name, member)
    return [[kebab(name.replace(/(Ms|Mb)$/, '')), isEmpty(member) ? '-' : formatted(member, name)]]
  })
}

function isEmpty(value: unknown): boolean {
  return value === null || value === undefined || (Array.isArray(value) && value.length === 0)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

/** Of a list the values of all its items, as far as they have one. */
function valueAt(path: string, from: unknown): unknown {
  return path.split('.').reduce((inner, name) => {
    if (Array.isArray(inner)) return inner.flatMap((each) => memberOf(each, name) ?? [])
    return memberOf(inner, name)
  }, from)
}

function memberOf(value: unknown, name: string): unknown {
  return isObject(value) ? (value as Record<string, unknown>)[name] : undefined
}

function formatted(value: unknown, path: string, format = formatOf(path), time: TimeText = timeText): string {
  if (format === 'json') return JSON.stringify(value)
  if (format === 'schema') return typeof value === 'boolean' || isObject(value) ? schemaText(value) : 'any'
  if (typeof value === 'number') return numberText(value, format, time)
  if (typeof value === 'string') return value
  if (typeof value === 'boolean') return value ? 'yes' : 'no'
  if (Array.isArray(value)) return listText(value.map((each) => formatted(each, path, format, time)))
  const text = JSON.stringify(value)
  return text.length > MOST_JSON ? `${text.slice(0, MOST_JSON)}…` : text
}

function formatOf(path: string): string | undefined {
  const [, ending] = /(At|Ms|Bytes|Mb|[sS]chema)$/.exec(path) ?? []
  return ending === undefined ? undefined : BY_ENDING[ending.toLowerCase()]
}

const BY_ENDING: Record<string, string> = { at: 'time', ms: 'length', bytes: 'size', mb: 'mebibytes', schema: 'schema' }

function numberText(value: number, format: string | undefined, time: TimeText): string {
  if (format === 'time') return time(value)
  if (format === 'length') return lengthText(value)
  if (format === 'size') return bytesText(value)
  return format === 'mebibytes' ? `${value} MiB` : String(value)
}

function listText(items: string[]): string {
  if (items.length <= MOST_ITEMS) return items.join(', ')
  return `${items.slice(0, MOST_ITEMS).join(', ')} and ${items.length - MOST_ITEMS} more`
}
