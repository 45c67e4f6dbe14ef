import { type AnyExample, exampleOf, meaningOf } from '@windlass/shared/ops/words.ts'
import { type AnyOp, isForCallers, isPublic, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { decodeStrings, pathNames, ridesInQuery } from '@windlass/shared/ops/fill-route.ts'
import { z } from 'zod'
import type { ZodOpenApiOperationObject } from 'zod-openapi'
import { failures, success } from './openapi-answers.ts'

/** The group of a row's id, which is its tag: `runs` of `runs.get`. */
function groupOf(row: AnyOp): string {
  return row.id.slice(0, row.id.indexOf('.'))
}

/** `runs.get` → `runsGet`: a name that generators take over as it is, or turn into the style of their language. */
export function operationIdOf(row: AnyOp): string {
  return row.id.replace(/\.(\w)/g, (_, letter: string) => letter.toUpperCase())
}

export function operation(row: AnyOp): ZodOpenApiOperationObject {
  const example = exampleOf(row)
  const { inPath, inQuery, inBody } = fieldsByLocation(row)
  const inHeader = Object.keys(example.headers ?? {})
  return {
    operationId: operationIdOf(row),
    summary: row.summary,
    description: [...farewell(row), example.about, ...elsewhere(row), ...access(row)].join('\n\n'),
    tags: [groupOf(row)],
    ...(row.deprecated && { deprecated: true }),
    ...security(row),
    requestParams: {
      ...(inPath.length > 0 && { path: parameters(row, inPath) }),
      ...(inQuery.length > 0 && { query: parameters(row, inQuery) }),
      ...(inHeader.length > 0 && { header: headers(example) }),
    },
    ...(inBody.length > 0 && { requestBody: body(row, inBody) }),
    responses: { ...success(row), ...failures(row) },
    ...facts(row),
  }
}

function farewell({ deprecated }: AnyOp): string[] {
  if (!deprecated) return []
  const { since, sunset, use } = deprecated
  return [`Deprecated since ${since}: use \`${use}\`. It may be gone from ${sunset} on.`]
}

function elsewhere({ aliases = [] }: AnyOp): string[] {
  return aliases.length === 0 ? [] : [`Served at ${aliases.map((path) => `\`${path}\``).join(' and ')} as well.`]
}

function fieldsByLocation(row: AnyOp): Record<'inPath' | 'inQuery' | 'inBody', string[]> {
  const inPath = pathNames(row.path)
  const others = Object.keys(row.input.shape).filter((name) => !inPath.includes(name))
  const inQuery = others.filter((name) => ridesInQuery(row, name))
  return { inPath, inQuery, inBody: others.filter((name) => !inQuery.includes(name)) }
}

function security(row: AnyOp): Pick<ZodOpenApiOperationObject, 'security'> {
  if (isPublic(row)) return { security: [] }
  return isSessionOnly(row) ? { security: [{ session: [] }] } : {}
}

/** Sentences for people; `facts` say the same to programs. */
function access(row: AnyOp): string[] {
  if (!isForCallers(row)) return []
  const role = `Needs the role \`${row.role}\` or higher.`
  if (isSessionOnly(row)) return [`${role} Takes a session only: an API key gets 403 at any scope.`]
  const scopes = row.scope.map((scope) => `\`${scope}\``).join(' or ')
  return [`${role} ${scopes === '' ? 'Not for keys with a list of scopes.' : `Scope: ${scopes}.`}`]
}

function facts(row: AnyOp): Record<`x-${string}`, unknown> {
  return {
    'x-operation': row.id,
    ...(isForCallers(row) && { 'x-role': row.role, 'x-scopes': row.scope }),
    ...(isSessionOnly(row) && { 'x-session-only': true }),
    ...(row.mcp && { 'x-mcp-tool': row.mcp.tool }),
  }
}

/** In paths and queries a list is one value with commas, not a repeated name. */
function parameters(row: AnyOp, names: readonly string[]): z.ZodObject {
  const { input } = exampleOf(row)
  const shape = names.map((name) => {
    const schema = described(row, name)
    const isList = Array.isArray(decodeStrings(row.input, { [name]: '' })[name])
    const param = {
      ...(isList && { style: 'form' as const, explode: false }),
      ...(input[name] !== undefined && { example: input[name] }),
    }
    return [name, schema.meta({ ...schema.meta(), param })] as const
  })
  return z.strictObject(Object.fromEntries(shape))
}

function headers({ headers = {} }: AnyExample): z.ZodObject {
  const shape = Object.entries(headers).map(([name, description]) => [
    name,
    z.string().max(255).optional().meta({ description }),
  ])
  return z.object(Object.fromEntries(shape) as Record<string, z.ZodType>)
}

function body(row: AnyOp, names: readonly string[]) {
  const schema = z.strictObject(Object.fromEntries(names.map((name) => [name, described(row, name)])))
  const input = Object.entries(exampleOf(row).input).filter(([name]) => names.includes(name))
  const example = Object.fromEntries(input)
  return { required: !schema.safeParse({}).success, content: { 'application/json': { schema, example } } }
}

function described(row: AnyOp, name: string): z.ZodType {
  const schema = (row.input.shape as Record<string, z.ZodType>)[name]!
  const description = meaningOf(row, name)
  return description === undefined ? schema : schema.meta({ ...schema.meta(), description })
}
