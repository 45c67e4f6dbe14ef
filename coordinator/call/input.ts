import { Fault } from '@windlass/shared/errors.ts'
import { decodeStrings } from '@windlass/shared/ops/fill-route.ts'
import type { z } from 'zod'
import { readFields } from './body.ts'
import { refuseCrowds } from './crowds.ts'
import type { HttpRequest } from './exchange.ts'
import { invalidInput } from './issues.ts'
import type { Plan } from './plan.ts'
import type { Room } from './room.ts'
import { refuseHalves } from '../texts.ts'

type Strings = Record<string, string>

/** The parts of the path that the row names, decoded. Still text: the schema looks at them once the caller is known. */
export function readParams(plan: Plan, request: HttpRequest): Strings {
  const params: Strings = {}
  for (const [name, key] of plan.pathKeys) {
    const text = request.path_parameters[key] ?? restOf(request.path, plan)
    params[name] = plan.addressed.includes(name) ? decodeAddress(text) : decode(text, name)
    if (params[name] === '') throw new Fault('NOT_FOUND')
  }
  return params
}

function restOf(path: string, { restAfter }: Plan): string {
  return restAfter === undefined ? '' : path.split('/').slice(restAfter).join('/')
}

/** One flat object out of path and query or body, checked against the row's schema. */
export async function readInput(plan: Plan, request: HttpRequest, params: Strings, room?: Room): Promise<unknown> {
  const { row } = plan
  // Query and body belong to somebody else's form: the handler reads them.
  if (row.body === 'raw') return checkInput(plan, decodeStrings(row.input, params))
  const query = request.path_query === '' ? undefined : readQuery(request.path_query)
  const given: Record<string, unknown> = decodeStrings(row.input, query ? joined(params, query) : params)
  const fields =
    plan.ridesIn === 'body' ? joined(given, await bodyOf(plan, request, { query, room })) : withoutBody(request, given)
  return checkInput(plan, fields)
}

/** The fields as the schema of the row has them, or a refusal that names the first that does not fit. */
export function checkInput(plan: Plan, fields: Record<string, unknown>): Record<string, unknown> {
  const { row } = plan
  refuseCrowds(row.input, fields)
  const result = row.input.safeParse(fields)
  if (!result.success || !plan.addressed.every((name) => isStorable(fields[name]))) needAddress(plan, fields)
  if (!result.success) throw invalidInput(row.input, result.error)
  refuseHalves(row.input, result.data)
  return result.data
}

/** What nothing can be called is not found, like what nobody has: a path is never at fault for its form. */
export function needAddress({ row, addressed }: Plan, fields: Record<string, unknown>): void {
  for (const name of addressed) {
    const given = fields[name]
    if (typeof given !== 'string' && typeof given !== 'number') continue
    const result = (row.input.shape[name] as z.ZodType).safeParse(given)
    if (result.success && isStorable(given)) continue
    const why = result.error && invalidInput(row.input, result.error).message
    const message = `There is nothing here under this name${why ? `: \`${name}\` ${why}` : ''}.`
    throw new Fault('NOT_FOUND', { [name]: typeof given === 'string' ? given.slice(0, 100) : given }, message)
  }
}

/** PostgreSQL's text holds no U+0000, and UTF-8 no half of a surrogate pair. */
function isStorable(given: unknown): boolean {
  return typeof given !== 'string' || (given.isWellFormed() && !given.includes('\0'))
}

type BodyParts = { query: Strings | undefined; room: Room | undefined }

async function bodyOf(plan: Plan, request: HttpRequest, { query, room }: BodyParts): Promise<Record<string, unknown>> {
  const { inQuery = [] } = plan.row
  const stray = query && Object.keys(query).find((name) => !inQuery.includes(name))
  if (stray !== undefined) throw misplaced(stray, `\`${stray}\` belongs in the JSON body, not in the query`)
  const fields = await readFields(request, plan.bodyBytes, room)
  const swapped = inQuery.find((name) => Object.hasOwn(fields, name))
  if (swapped !== undefined) throw misplaced(swapped, `\`${swapped}\` belongs in the query, not in the JSON body`)
  return fields
}

function withoutBody(request: HttpRequest, fields: Record<string, unknown>): Record<string, unknown> {
  if (request.received) return fields
  throw misplaced('', `${request.method} takes no body; put the fields into the query`)
}

/** Two sources of fields as one. A field that comes from both would leave open which one counts. */
function joined<T>(params: Record<string, T>, more: Record<string, T>): Record<string, T> {
  for (const name of Object.keys(params)) {
    if (Object.hasOwn(more, name)) throw misplaced(name, `\`${name}\` is given by the path; leave it out elsewhere`)
  }
  // Spreading defines fields, also one named `__proto__`; assigning would set the prototype.
  return { ...params, ...more }
}

function misplaced(path: string, message: string): Fault {
  return new Fault('VALIDATION_FAILED', { path }, message)
}

/** Strict where the URL standard is lenient: a repeated name or a broken escape is refused, not guessed at. */
function readQuery(text: string | undefined): Strings {
  const query: Strings = Object.create(null) as Strings
  // Not there at all, in spite of its type, when the address has no question mark.
  for (const pair of (text ?? '').split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decode((equals === -1 ? pair : pair.slice(0, equals)).replaceAll('+', ' '), '')
    if (Object.hasOwn(query, name))
      throw misplaced(name, `\`${name}\` is given twice; for a list separate the values by commas`)
    query[name] = equals === -1 ? '' : decode(pair.slice(equals + 1).replaceAll('+', ' '), name)
  }
  return query
}

function decodeAddress(text: string): string {
  try {
    return decode(text, '')
  } catch (error) {
    throw error instanceof Fault ? new Fault('NOT_FOUND') : error
  }
}

function decode(text: string, path: string): string {
  // What came as bytes that are no UTF-8 has been replaced by this; whoever means it, escapes it.
  if (text.includes('\ufffd')) throw misplaced(path, 'the address holds bytes that are not UTF-8; percent-encode them')
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    throw misplaced(path, `\`${text.slice(0, 100)}\` is not percent-encoded UTF-8; write \`%25\` for a percent sign`)
  }
}
