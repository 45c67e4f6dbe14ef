import { FAULTS, type FaultCode } from '@windlass/shared/errors.ts'
import { exampleOf } from '@windlass/shared/ops/words.ts'
import { type AnyOp, isForCallers, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { z } from 'zod'
import type { ZodOpenApiResponsesObject } from 'zod-openapi'
import { faultsOf } from './faults-of.ts'

const text = (description: string) => ({ description, schema: { type: 'string' as const } })

export const HEADERS = {
  'X-Request-Id': text('Names this request in the log of the coordinator.'),
  ETag: text('Send it back as `If-None-Match` to be told 304 when nothing has changed.'),
  'Content-Range': text('Which bytes of how many: `bytes 0-499/1234`, or `bytes */1234` of none.'),
  Allow: text('The methods that this path takes.'),
  'Retry-After': { description: 'Seconds to wait before the next try.', schema: { type: 'integer' as const } },
  'RateLimit-Policy': text('The limits: requests (`q`) in a window of seconds (`w`), as in `"identity";q=600;w=60`.'),
  RateLimit: text(
    'What is left: requests (`r`) and seconds until the window ends (`t`), as in `"identity";r=12;t=30`.',
  ),
  'WWW-Authenticate': text('How to show a credential.'),
}

type Header = keyof typeof HEADERS

/** Those that every answer of the row carries, and some more. */
function headersOf(row: AnyOp, ...more: Header[]): Record<string, { $ref: `#/components/headers/${Header}` }> {
  const limits: Header[] = isForCallers(row) ? ['RateLimit-Policy', 'RateLimit'] : []
  const names: Header[] = ['X-Request-Id', ...limits, ...more]
  return Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` as const }]))
}

export function success(row: AnyOp): ZodOpenApiResponsesObject {
  if (row.wire === 'sse') return stream(row)
  if (row.wire !== undefined) return bytes(row)
  if (row.success === 204) return { '204': { description: 'Done.', headers: headersOf(row) } }
  const content = { 'application/json': { schema: row.output, example: exampleOf(row).output } }
  if (row.method === 'GET')
    return { '200': { description: 'Found.', headers: headersOf(row, 'ETag'), content }, ...unchanged(row) }
  const description = row.success === 202 ? 'Begun: the job goes on with it.' : 'Done.'
  const done = { [String(row.success)]: { description, headers: headersOf(row), content } }
  if (!row.faults.includes('IDEMPOTENCY_CONFLICT')) return done
  return { '200': { description: 'Done before, under the same key.', headers: headersOf(row), content }, ...done }
}

function unchanged(row: AnyOp): ZodOpenApiResponsesObject {
  const description = 'Unchanged since the `ETag` that was sent as `If-None-Match`.'
  return { '304': { description, headers: headersOf(row, 'ETag') } }
}

function stream(row: AnyOp): ZodOpenApiResponsesObject {
  const content = { 'text/event-stream': { schema: row.output, example: exampleOf(row).output } }
  return { '200': { description: 'A live stream.', headers: headersOf(row), content } }
}

function bytes(row: AnyOp): ZodOpenApiResponsesObject {
  const { output, bytes } = exampleOf(row)
  if (!bytes) throw new Error(`${row.id} answers bytes; its example must say of which types`)
  const [first] = bytes.types
  const content = Object.fromEntries(
    bytes.types.map((type) => [type, { schema: row.output, ...(type === first && { example: output }) }]),
  )
  if (!bytes.hasEtag) return { '200': { description: 'Found.', headers: headersOf(row), content } }
  const found = { '200': { description: 'Found.', headers: headersOf(row, 'ETag'), content }, ...unchanged(row) }
  if (!row.ranges) return found
  return {
    ...found,
    '206': { description: 'The part of it.', headers: headersOf(row, 'ETag', 'Content-Range'), content },
  }
}

const Envelope = z
  .object({
    error: z.object({
      code: z
        .enum(Object.keys(FAULTS) as [FaultCode, ...FaultCode[]])
        .meta({ description: 'Stable; codes are never reused.' }),
      message: z.string().meta({ description: 'A sentence for people; it may change.' }),
      detail: z
        .looseObject({
          path: z.string().optional().meta({ description: 'The offending field, as in `files[2].path`.' }),
        })
        .optional(),
    }),
  })
  .meta({ id: 'ErrorAnswer', description: 'Every answer outside 2xx and 304.' })

/** One response a status; its description lists the codes that share it, and each has an example. */
export function failures(row: AnyOp): ZodOpenApiResponsesObject {
  const byStatus = new Map<number, FaultCode[]>()
  for (const code of faultsOf(row)) byStatus.set(FAULTS[code][0], [...(byStatus.get(FAULTS[code][0]) ?? []), code])
  const inOrder = [...byStatus].sort(([a], [b]) => a - b)
  return Object.fromEntries(inOrder.map(([status, codes]) => [String(status), failure(row, codes)]))
}

function failure(row: AnyOp, codes: readonly FaultCode[]) {
  const examples = Object.fromEntries(codes.map((code) => [code, { value: envelopeOf(row, code) }]))
  return {
    description: codes.map((code) => `\`${code}\`: ${FAULTS[code][1]}`).join(' '),
    headers: headersOf(row, ...new Set(codes.flatMap((code) => WITH[code] ?? []))),
    content: { 'application/json': { schema: Envelope, examples } },
  }
}

/** Headers that come with a code. */
const WITH: Partial<Record<FaultCode, readonly Header[]>> = {
  UNAUTHENTICATED: ['WWW-Authenticate'],
  METHOD_NOT_ALLOWED: ['Allow'],
  RANGE_NOT_SATISFIABLE: ['Content-Range'],
  RATE_LIMITED: ['Retry-After'],
  UNAVAILABLE: ['Retry-After'],
}

/** What the row answers with this code. Where the sentence is made for the case, the general one stands here. */
export function envelopeOf(row: AnyOp, code: FaultCode) {
  const detail = detailOf(row, code)
  return { error: { code, message: FAULTS[code][1], ...(detail && { detail }) } }
}

function detailOf(row: AnyOp, code: FaultCode): Record<string, unknown> | undefined {
  if (code === 'VALIDATION_FAILED') return { path: Object.keys(exampleOf(row).input).at(-1) ?? 'nonsense' }
  if (code === 'METHOD_NOT_ALLOWED') return { allow: [row.method] }
  if (code === 'FORBIDDEN' && isForCallers(row))
    return { needs: isSessionOnly(row) ? { session: true } : { role: row.role } }
  if (code === 'RATE_LIMITED') {
    // Where nobody is known yet, refused credentials are counted by their address.
    const counted = isForCallers(row) ? { scope: 'identity', limit: 600 } : { scope: 'address', limit: 300 }
    return { ...counted, windowMs: 60_000, retryAfterMs: 12_000 }
  }
  if (code === 'INTERNAL') return { requestId: 'req_01m7w2y7m0x4mfd8v6x2kq1r7t' }
  return undefined
}
