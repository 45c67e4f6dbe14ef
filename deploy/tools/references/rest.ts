import { faultsOf } from '@windlass/coordinator/api/faults-of.ts'
import { openApiDocument } from '@windlass/coordinator/api/openapi.ts'
import { FAULTS, type FaultCode } from '@windlass/shared/errors.ts'
import { exampleOf, isDocumented, meaningOf } from '@windlass/shared/ops/words.ts'
import { allOps, groups } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isForCallers, isPublic, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { pathNames, ridesInQuery } from '@windlass/shared/ops/fill-route.ts'
import { schemaText } from 'windlass/cli/schema-text.ts'
import { curlOf } from './curl.ts'
import { code, compactJson, fence, headed, table } from './markdown.ts'

/** What every operation for callers may answer. */
const COMMON: ReadonlySet<FaultCode> = new Set([
  'VALIDATION_FAILED',
  'UNAUTHENTICATED',
  'FORBIDDEN',
  'METHOD_NOT_ALLOWED',
  'RATE_LIMITED',
  'INTERNAL',
  'UNAVAILABLE',
])

function everyOther(): string {
  return [...COMMON].map((name) => `${FAULTS[name][0]} \`${name}\``).join(', ')
}

const ABOUT = `Every operation with its fields, an example and its errors. The same for programs: \`/v1/openapi.json\`; as a page to try:
\`/v1/docs\`. Requests and answers are JSON, times are milliseconds since the Unix epoch. Every operation that needs
a credential may also answer ${everyOther()}: see [errors.md](errors.md).

The examples are of an org \`acme\` and find in the environment who asks whom: \`WINDLASS_URL\`, \`WINDLASS_API_KEY\` and, where only
a session will do, \`WINDLASS_SESSION\`. \`npm start\` prints the first two, and the slug of its org; a session is made on the coordinator's
host by \`windlass admin sessions create --org <org> --role <role>\`.`

export function restReference(): string {
  const rows = allOps.filter(isDocumented)
  const index = table(
    ['operation', 'method', 'path'],
    rows.map((row) => [`[${row.id}](#${anchor(row)})`, row.method, code(row.path)]),
  )
  const sections = Object.entries(groups).flatMap(([name, { docs }]) => {
    const own = rows.filter((row) => row.id.startsWith(`${name}.`))
    return docs === undefined ? [] : [[`## ${name}`, docs, ...own.map(operation)].join('\n\n')]
  })
  return headed('REST', ABOUT, index, ...sections)
}

/** As GitHub makes it of a heading. */
function anchor(row: AnyOp): string {
  return row.id.toLowerCase().replace('.', '')
}

function operation(row: AnyOp): string {
  const fields = Object.keys(row.input.shape).map((name) => field(row, name))
  const parts = [
    `### ${row.id}`,
    fence('', [row.path, ...(row.aliases ?? [])].map((path) => `${row.method} ${path}`).join('\n')),
    `${row.summary} ${exampleOf(row).about}`,
    access(row),
  ]
  if (fields.length > 0) parts.push(table(['field', 'in', 'type', 'default', 'what it is'], fields))
  parts.push(...example(row), `Errors: ${errors(row)}.`)
  return parts.join('\n\n')
}

function access(row: AnyOp): string {
  if (isPublic(row)) return 'For everybody, without a credential.'
  const scopes = row.scope.length === 0 ? 'none: not for keys with a list of scopes' : row.scope.map(code).join(' or ')
  const tool = row.mcp ? ` MCP tool: \`${row.mcp.tool}\`.` : ''
  if (isSessionOnly(row)) return `Least role: \`${row.role}\`. A session only.${tool}`
  return `Least role: \`${row.role}\`. Scope: ${row.scope.length > 5 ? 'any' : scopes}.${tool}`
}

interface Property {
  default?: unknown
}
interface Operation {
  parameters?: { name: string; schema: Property }[]
  requestBody?: { content: Record<string, { schema: { properties: Record<string, Property> } }> }
}

/** As a reader of the document gets it. */
const { paths } = JSON.parse(JSON.stringify(openApiDocument(''))) as {
  paths: Record<string, Record<string, Operation>>
}

/** What the OpenAPI document says of a field. */
function propertyOf(row: AnyOp, name: string): Property {
  const { parameters = [], requestBody } = paths[row.path]![row.method.toLowerCase()]!
  const inBody = requestBody?.content['application/json']?.schema.properties
  return parameters.find((one) => one.name === name)?.schema ?? inBody?.[name] ?? {}
}

function field(row: AnyOp, name: string): string[] {
  const property = propertyOf(row, name)
  const shape = row.input.shape as Record<string, { safeParse(value: unknown): { success: boolean } }>
  const isOptional = shape[name]!.safeParse(undefined).success
  const otherwise = property.default === undefined ? 'optional' : code(JSON.stringify(property.default))
  const need = isOptional ? otherwise : 'required'
  return [code(name), carrierOf(row, name), code(typeOf(property)), need, meaningOf(row, name) ?? '']
}

/** An id or a slug is text both ways. */
function typeOf(json: object): string {
  const text = schemaText(json)
  return text === 'string | string' ? 'string' : text
}

function carrierOf(row: AnyOp, name: string): string {
  if (pathNames(row.path).includes(name)) return 'path'
  return ridesInQuery(row, name) ? 'query' : 'body'
}

function example(row: AnyOp): string[] {
  const { output } = exampleOf(row)
  const call = fence('sh', curlOf(row))
  if (row.success === 204) return [call, 'Answers 204 without content.']
  const answer = row.wire === undefined ? fence('json', compactJson(output)) : fence('', String(output))
  return [call, `Answers ${row.success}:`, answer]
}

function errors(row: AnyOp): string {
  const isCommon = (name: FaultCode) => isForCallers(row) && COMMON.has(name)
  const own = [...faultsOf(row)].filter((name) => !isCommon(name)).sort((a, b) => FAULTS[a][0] - FAULTS[b][0])
  const names = own.map((name) => `${FAULTS[name][0]} \`${name}\``)
  return [...names, ...(isForCallers(row) ? ['those of every operation'] : [])].join(', ')
}
