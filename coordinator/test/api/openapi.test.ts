import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FAULTS } from '@windlass/shared/errors.ts'
import { isDocumented } from '@windlass/shared/ops/words.ts'
import { isForCallers, isPublic, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import { faultsOf } from '../../api/faults-of.ts'
import { openApiDocument } from '../../api/openapi.ts'

interface Parameter {
  in: string
  name: string
  required?: boolean
  description?: string
  example?: unknown
  schema: Record<string, unknown>
  explode?: boolean
}
interface Content {
  schema: object
  example?: unknown
  examples?: Record<string, { value: { error: { code: string; message: string } } }>
}
interface Operation {
  operationId: string
  summary: string
  description: string
  tags: string[]
  parameters?: Parameter[]
  requestBody?: { required: boolean; content: Record<string, Content> }
  responses: Record<string, { description: string; headers: object; content?: Record<string, Content> }>
  security?: unknown[]
  'x-operation': string
  'x-role'?: string
  'x-scopes'?: string[]
  'x-session-only'?: boolean
}
interface Document {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { additionalProperties?: unknown }>; securitySchemes: Record<string, unknown> }
  tags: { name: string; description: string }[]
}

// As a reader gets it: undefined fields are gone, and nothing is shared.
const document = JSON.parse(JSON.stringify(openApiDocument('1.2.3'))) as Document
const rows = allOps.filter(isDocumented)
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

function operationOf(id: string): Operation {
  const found = operations.find(({ operation }) => operation['x-operation'] === id)
  assert.ok(found, id)
  return found.operation
}

test('every public row is an operation, and nothing else is', () => {
  const described = operations.map(({ path, method, operation }) => `${operation['x-operation']} ${method} ${path}`)
  assert.deepEqual(described.sort(), rows.map((row) => `${row.id} ${row.method.toLowerCase()} ${row.path}`).sort())
  assert.match(document.openapi, /^3\.1\./)
  assert.equal(document.info.version, '1.2.3')
})

test('every $ref leads somewhere', () => {
  const refs = JSON.stringify(document).matchAll(/"\$ref":"#\/([^"]+)"/g)
  let count = 0
  for (const [, pointer] of refs) {
    count++
    let at: unknown = document
    for (const part of pointer!.split('/')) at = (at as Record<string, unknown>)[part.replaceAll('~1', '/')]
    assert.ok(at, pointer)
  }
  assert.ok(count > 50)
})

test('the names in a path are its required parameters, and every tag is declared', () => {
  for (const { path, operation } of operations) {
    const inPath = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path')
    assert.deepEqual(
      inPath.map((parameter) => parameter.name),
      pathNames(path),
      path,
    )
    for (const parameter of inPath) assert.equal(parameter.required, true, path)
    for (const tag of operation.tags) assert.ok(document.tags.find(({ name }) => name === tag)?.description, tag)
  }
})

test('every operation answers its success, and its faults with the envelope', () => {
  for (const row of rows) {
    const { responses } = operationOf(row.id)
    assert.ok(responses[String(row.success)], row.id)
    for (const [status, response] of Object.entries(responses)) {
      assert.ok(response.description.length > 0)
      if (Number(status) < 400) continue
      assert.deepEqual(
        response.content?.['application/json']?.schema,
        { $ref: '#/components/schemas/ErrorAnswer' },
        row.id,
      )
    }
    if (isForCallers(row)) assert.ok(responses['401'] && responses['403'], row.id)
  }
})

test('bodies and queries take what is not in the path', () => {
  const trigger = operationOf('runs.trigger')
  assert.ok(trigger.requestBody?.content['application/json'])
  assert.equal(trigger.requestBody.required, false)
  assert.equal(operationOf('workflows.create').requestBody?.required, true)
  const list = operationOf('runs.list')
  assert.equal(list.requestBody, undefined)
  const status = list.parameters?.find((parameter) => parameter.name === 'status')
  assert.deepEqual([status?.in, status?.explode, status?.schema.type], ['query', false, 'array'])
})

test('a live stream is an event stream; public rows need no credential, some rows a session, all others either', () => {
  assert.ok(operationOf('runs.stream').responses['200']?.content?.['text/event-stream'])
  for (const row of rows) {
    const wanted = isPublic(row) ? [] : isSessionOnly(row) ? [{ session: [] }] : undefined
    assert.deepEqual(operationOf(row.id).security, wanted, row.id)
    assert.equal(operationOf(row.id)['x-role'], row.role ?? undefined, row.id)
  }
  assert.deepEqual(Object.keys(document.components.securitySchemes), ['apiKey', 'session'])
  assert.deepEqual(operationOf('runs.trigger')['x-scopes'], ['run:trigger', 'workflow:trigger'])
  assert.equal(operationOf('secrets.set')['x-session-only'], true)
})

test('operation ids are names in every language, and unique', () => {
  const ids = operations.map(({ operation }) => operation.operationId)
  for (const id of ids) assert.match(id, /^[a-z][A-Za-z]*$/)
  assert.equal(new Set(ids.map((id) => id.toLowerCase())).size, ids.length)
})

test('every operation, parameter and field of a body is described, and has an example where one is given', () => {
  for (const { operation } of operations) {
    const id = operation['x-operation']
    assert.ok(operation.summary && operation.description.length > operation.summary.length / 2, id)
    for (const { name, description } of operation.parameters ?? []) assert.ok(description, `${id} ${name}`)
    for (const { name, example, in: location } of operation.parameters ?? [])
      if (location === 'path') assert.notEqual(example, undefined, `${id} ${name}`)
    const body = operation.requestBody?.content['application/json']
    if (!body) continue
    const { properties } = body.schema as { properties: Record<string, { description?: string }> }
    for (const [name, { description }] of Object.entries(properties)) assert.ok(description, `${id} ${name}`)
    assert.notEqual(body.example, undefined, id)
  }
})

const ajv = new Ajv2020({ strict: false, validateFormats: false })
ajv.addSchema({ $id: 'document', components: document.components })
const validators = new Map<string, ValidateFunction>()

function validator(schema: object): ValidateFunction {
  const text = JSON.stringify(schema).replaceAll('"#/components/', '"document#/components/')
  const made = validators.get(text) ?? ajv.compile(JSON.parse(text) as object)
  validators.set(text, made)
  return made
}

test('every example fits the schema beside it', () => {
  let count = 0
  const check = (about: string, schema: object, example: unknown) => {
    count++
    const fits = validator(schema)
    assert.ok(fits(example), `${about}: ${JSON.stringify(fits.errors)}`)
  }
  for (const { operation } of operations) {
    const id = operation['x-operation']
    for (const { name, schema, example } of operation.parameters ?? [])
      if (example !== undefined) check(`${id} ${name}`, schema, example)
    const bodies = [operation.requestBody, ...Object.values(operation.responses)]
    for (const { schema, example, examples = {} } of bodies.flatMap((each) => Object.values(each?.content ?? {}))) {
      if (example !== undefined) check(id, schema, example)
      for (const [code, { value }] of Object.entries(examples)) check(`${id} ${code}`, schema, value)
    }
  }
  assert.ok(count > 400, String(count))
})

test('every code that a row may answer has an envelope under its status, with the sentence of the code', () => {
  for (const row of rows) {
    for (const code of faultsOf(row)) {
      const answer = operationOf(row.id).responses[String(FAULTS[code][0])]
      const example = answer?.content?.['application/json']?.examples?.[code]?.value.error
      assert.equal(example?.code, code, row.id)
      assert.ok(answer?.description.includes(`\`${code}\``), row.id)
    }
  }
})

test('answers to callers carry the limits, and 429 says when to come back', () => {
  const { responses } = operationOf('runs.get')
  for (const [status, { headers }] of Object.entries(responses)) {
    for (const name of ['X-Request-Id', 'RateLimit', 'RateLimit-Policy'])
      assert.ok(name in headers, `${status} ${name}`)
  }
  assert.ok('Retry-After' in responses['429']!.headers)
  assert.ok('Allow' in responses['405']!.headers)
  assert.equal(operationOf('service.health').responses['429'], undefined)
})

test('headers that an operation heeds are parameters', () => {
  const heeded = (id: string) => operationOf(id).parameters?.flatMap((one) => (one.in === 'header' ? [one.name] : []))
  for (const id of [
    'runs.trigger',
    'runs.retry',
    'runs.bulkRetry',
    'schedules.create',
    'schedules.run',
    'deliveries.replay',
  ])
    assert.deepEqual(heeded(id), ['Idempotency-Key'], id)
  assert.deepEqual(heeded('runs.stream'), ['Last-Event-ID'])
})

test('what belongs to the address rides in the query though the method has a body', () => {
  const { parameters, requestBody } = operationOf('variables.set')
  assert.equal(parameters?.find(({ name }) => name === 'environment')?.in, 'query')
  const schema = requestBody?.content['application/json']?.schema as { properties: object } | undefined
  assert.deepEqual(Object.keys(schema?.properties ?? {}), ['value'])
})

test('answers may grow: no schema of one forbids further fields', () => {
  assert.equal(document.components.schemas.Run?.additionalProperties, undefined)
  assert.ok(document.components.schemas.Run)
})
