import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allOps } from '@windlass/shared/ops/index.ts'
import { pathNames } from '@windlass/shared/ops/place.ts'
import { openApiDocument } from '../../api/openapi.ts'

interface Operation {
  operationId: string
  tags: string[]
  parameters?: { in: string; name: string; required?: boolean; schema: Record<string, unknown>; explode?: boolean }[]
  requestBody?: { required: boolean; content: Record<string, { schema: unknown }> }
  responses: Record<string, { description: string; content?: Record<string, { schema: unknown }> }>
  security?: unknown[]
}
interface Document {
  openapi: string
  info: { title: string; version: string }
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, { additionalProperties?: unknown }>; securitySchemes: Record<string, unknown> }
  tags: { name: string }[]
}

// As a reader gets it: undefined fields are gone, and nothing is shared.
const document = JSON.parse(JSON.stringify(openApiDocument('1.2.3'))) as Document
const rows = allOps.filter((row) => !row.path.startsWith('/runner/'))
const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
)

function operationOf(id: string): Operation {
  const found = operations.find(({ operation }) => operation.operationId === id)
  assert.ok(found, id)
  return found.operation
}

test('every public row is an operation, and nothing else is', () => {
  const described = operations.map(({ path, method, operation }) => `${operation.operationId} ${method} ${path}`)
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
    for (const tag of operation.tags) assert.ok(document.tags.some((declared) => declared.name === tag))
  }
})

test('every operation answers its success, and its faults with the envelope', () => {
  for (const row of rows) {
    const { responses } = operationOf(row.id)
    assert.ok(responses[String(row.success)], row.id)
    for (const [status, response] of Object.entries(responses)) {
      assert.ok(response.description.length > 0)
      if (Number(status) < 400) continue
      assert.deepEqual(response.content?.['application/json']?.schema, { $ref: '#/components/schemas/Error' }, row.id)
    }
    if (row.door === 'caller') assert.ok(responses['401'] && responses['403'], row.id)
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

test('a live stream is an event stream; public rows need no key, all others do', () => {
  assert.ok(operationOf('runs.stream').responses['200']?.content?.['text/event-stream'])
  for (const row of rows) assert.deepEqual(operationOf(row.id).security, row.door === 'public' ? [] : undefined, row.id)
  assert.deepEqual(document.components.securitySchemes.apiKey && Object.keys(document.components.securitySchemes), [
    'apiKey',
  ])
})

test('answers may grow: no schema of one forbids further fields', () => {
  assert.equal(document.components.schemas.Run?.additionalProperties, undefined)
  assert.ok(document.components.schemas.Run)
})
