import assert from 'node:assert/strict'
import { newId } from '@windlass/shared/ids.ts'
import type { AnyOp, Credential } from '@windlass/shared/ops/op.ts'
import { pathNames, restRidesIn, ridesInQuery } from '@windlass/shared/ops/fill-route.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { z } from 'zod'
import { type Envelope, envelope, pathOf } from './stub-server.ts'

/** A path of the row that fits its schema. */
export function fittingPath(row: AnyOp): string {
  return Object.entries(FITTING).reduce(
    (path, [field, value]) => path.replace(`no-value-for-${field}`, value),
    pathOf(row),
  )
}

/** Of the fields of paths that take no other text. */
const FITTING = {
  connection: newId('conn'),
  delivery: newId('dlv'),
  hook: newId('hook'),
  job: newId('job'),
  key: newId('key'),
  name: 'NAME',
  schedule: newId('sch'),
  token: newId('rtok'),
}

/** The fields of a row that ride in its body. */
export function bodyFields(row: AnyOp): [name: string, schema: z.ZodType][] {
  if (restRidesIn(row) === 'query') return []
  const inPath = pathNames(row.path)
  return Object.entries(row.input.shape as Record<string, z.ZodType>).filter(
    ([name]) => !inPath.includes(name) && !ridesInQuery(row, name),
  )
}

/** Values that hardly any field takes. Each field is sent those that its schema refuses. */
export const ODD: readonly unknown[] = [
  {},
  [],
  [[]],
  '',
  'x'.repeat(70_000),
  1.5,
  -1,
  1e300,
  true,
  null,
  { __proto__: null, a: 1 },
]

export interface RequestParts {
  path?: string
  body?: string | Uint8Array<ArrayBuffer>
  headers?: Record<string, string>
}

/** As the stub's verifiers read them. */
const TOKENS: Record<Credential, string> = {
  key: 'owner',
  session: 'session:owner',
  runner: 'runner',
  run: 'program',
}

/** A request with the credential for which the row is. */
export function request(
  url: string,
  row: AnyOp,
  { path = fittingPath(row), body, headers }: RequestParts = {},
): Promise<Response> {
  const token = row.credentials.map((credential) => TOKENS[credential]).at(-1)
  return fetch(url + path, {
    method: row.method,
    headers: {
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
      ...(body !== undefined && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body }),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
}

/** The answer is a refusal in the envelope, with one of these statuses. */
export async function refusedWith(
  response: Response,
  statuses: readonly number[],
  what: string,
): Promise<Envelope['error']> {
  assert.ok(statuses.includes(response.status), `${what}: ${response.status} ${await response.clone().text()}`)
  assert.match(response.headers.get('content-type') ?? '', /^application\/json/, what)
  assert.match(response.headers.get('x-request-id') ?? '', /^req_/, what)
  const error = await envelope(response)
  assert.ok(error.code && error.message, what)
  return error
}
