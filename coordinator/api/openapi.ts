import { FAULTS, type FaultCode } from '@windlass/shared/errors.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { decodeStrings, pathNames, ridesInQuery } from '@windlass/shared/ops/place.ts'
import { z } from 'zod'
import {
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  type ZodOpenApiResponsesObject,
  createDocument,
} from 'zod-openapi'
import { faultsOf } from './faults-of.ts'

type Document = ReturnType<typeof createDocument>

/** The public surface as an OpenAPI 3.1 document. What agents and programs speak is left out. */
export function openApiDocument(version: string): Document {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  for (const row of allOps.filter(isPublic)) {
    paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: operation(row) }
  }
  const document = {
    openapi: '3.1.0' as const,
    info: { title: 'Windlass', version, description: 'Deploys workflows and executes them as runs.' },
    servers: [{ url: '/' }],
    security: [{ apiKey: [] }],
    tags: groups().map((name) => ({ name })),
    paths,
    components: { headers: HEADERS, securitySchemes: { apiKey: API_KEY } },
  }
  return createDocument(document, { override: plainer })
}

const API_KEY = { type: 'http' as const, scheme: 'bearer', description: 'An API key: `Authorization: Bearer wl_…`.' }

const HEADERS = {
  'X-Request-Id': {
    description: 'Names this request in the log of the coordinator.',
    schema: { type: 'string' as const },
  },
  ETag: {
    description: 'Send it back as `If-None-Match` to be told 304 when nothing has changed.',
    schema: { type: 'string' as const },
  },
}

/** Answers may gain fields, so their schemas must not forbid them; and that whole numbers are safe ones goes without saying. */
const plainer: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  const isOpen = zodSchema instanceof z.ZodObject && !zodSchema.def.catchall
  if (io === 'output' && isOpen) delete jsonSchema.additionalProperties
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}

function isPublic(row: AnyOp): boolean {
  return (row.door === 'public' || row.door === 'caller') && !row.path.startsWith('/runner/')
}

function groups(): string[] {
  return [...new Set(allOps.filter(isPublic).map(groupOf))]
}

function groupOf(row: AnyOp): string {
  return row.id.split('.')[0] ?? row.id
}

function operation(row: AnyOp): ZodOpenApiOperationObject {
  const names = pathNames(row.path)
  const inPath = row.input.pick(mask(names))
  const others = Object.keys(row.input.shape).filter((name) => !names.includes(name))
  const inQuery = others.filter((name) => ridesInQuery(row, name))
  const inBody = others.filter((name) => !ridesInQuery(row, name))
  return {
    operationId: row.id,
    summary: row.summary,
    tags: [groupOf(row)],
    ...(row.door === 'public' && { security: [] }),
    ...(access(row) && { description: access(row) }),
    requestParams: {
      ...(names.length > 0 && { path: inPath }),
      ...(inQuery.length > 0 && { query: commaSeparated(row.input.pick(mask(inQuery))) }),
    },
    ...(inBody.length > 0 && { requestBody: body(row.input.pick(mask(inBody))) }),
    responses: { ...success(row), ...failures(row) },
  }
}

function mask(names: readonly string[]): Record<string, true> {
  return Object.fromEntries(names.map((name) => [name, true as const]))
}

/** A list in a query is one value with commas, not a repeated name. */
function commaSeparated(query: z.ZodObject): z.ZodObject {
  const isList = (name: string) => Array.isArray(decodeStrings(query, { [name]: '' })[name])
  const shape = Object.entries(query.shape as Record<string, z.ZodType>).map(([name, schema]) => {
    if (!isList(name)) return [name, schema] as const
    return [name, schema.meta({ ...schema.meta(), param: { style: 'form', explode: false } })] as const
  })
  return z.strictObject(Object.fromEntries(shape))
}

function body(schema: z.ZodObject) {
  return { required: !schema.safeParse({}).success, content: { 'application/json': { schema } } }
}

function access(row: AnyOp): string | undefined {
  if (row.door !== 'caller') return undefined
  const role = row.role === null ? [] : [`Needs the role \`${row.role}\` or higher.`]
  const scopes = row.scope.map((scope) => `\`${scope}\``).join(' or ')
  return [...role, scopes === '' ? 'Not for keys with a list of scopes.' : `Scope: ${scopes}.`].join(' ')
}

const REQUEST_ID = { 'X-Request-Id': { $ref: '#/components/headers/X-Request-Id' } } as const
const ETAG = { ETag: { $ref: '#/components/headers/ETag' } } as const

function success(row: AnyOp): ZodOpenApiResponsesObject {
  if (row.wire === 'sse') {
    const schema = z
      .string()
      .meta({ description: '`id` is the cursor, `event` the type, `data` JSON; resume by `Last-Event-ID`.' })
    return {
      '200': { description: 'A live stream.', headers: REQUEST_ID, content: { 'text/event-stream': { schema } } },
    }
  }
  if (row.wire === 'bytes') {
    const content = { 'text/plain': { schema: row.output } }
    return { '200': { description: 'The text exposition of Prometheus.', headers: REQUEST_ID, content } }
  }
  if (row.success === 204) return { '204': { description: 'Done.', headers: REQUEST_ID } }
  const content = { 'application/json': { schema: row.output } }
  if (row.method !== 'GET') {
    const done = { [String(row.success)]: { description: 'Done.', headers: REQUEST_ID, content } }
    if (!row.faults.includes('IDEMPOTENCY_CONFLICT')) return done
    return { '200': { description: 'Done before, under the same key.', headers: REQUEST_ID, content }, ...done }
  }
  const unchanged = { description: 'Unchanged since the `ETag` sent as `If-None-Match`.', headers: REQUEST_ID }
  return { '200': { description: 'Found.', headers: { ...REQUEST_ID, ...ETAG }, content }, '304': unchanged }
}

const Envelope = z
  .object({
    error: z.object({
      code: z
        .enum(Object.keys(FAULTS) as [FaultCode, ...FaultCode[]])
        .meta({ description: 'Stable; codes are never reused.' }),
      message: z.string(),
      detail: z
        .looseObject({
          path: z.string().optional().meta({ description: 'The offending field, as in `files[2].path`.' }),
        })
        .optional(),
    }),
  })
  .meta({ id: 'Error' })

/** One response a status; its description lists the codes that share it. */
function failures(row: AnyOp): ZodOpenApiResponsesObject {
  const byStatus = new Map<number, FaultCode[]>()
  for (const code of faultsOf(row)) byStatus.set(FAULTS[code][0], [...(byStatus.get(FAULTS[code][0]) ?? []), code])
  const content = { 'application/json': { schema: Envelope } }
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      String(status),
      { description: codes.map((code) => `\`${code}\`: ${FAULTS[code][1]}`).join(' '), headers: REQUEST_ID, content },
    ]),
  )
}
