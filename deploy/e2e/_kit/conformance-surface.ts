import { Fault } from '@windlass/shared/errors.ts'
import { UnknownTool } from '@windlass/coordinator/mcp/call-tool.ts'
import type { Surface } from '@windlass/coordinator/mcp/surface.ts'

// What MCP's suite wants to find on a server in order to test how it speaks: no tool of ours answers pictures.

type Tool = ReturnType<Surface['tools']>[number]
type Result = Awaited<ReturnType<Surface['call']>>

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=='
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA='

const text = (content: string) => ({ type: 'text', text: content })
const image = { type: 'image', data: PNG, mimeType: 'image/png' }
const resource = (uri: string, mimeType: string, content: string) => ({
  type: 'resource',
  resource: { uri, mimeType, text: content },
})

const ANSWERS: Readonly<Record<string, object>> = {
  test_simple_text: { content: [text('This is a simple text response for testing.')] },
  test_image_content: { content: [image] },
  test_audio_content: { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
  test_embedded_resource: {
    content: [resource('test://embedded-resource', 'text/plain', 'This is an embedded resource content.')],
  },
  test_multiple_content_types: {
    content: [
      text('Multiple content types test:'),
      image,
      resource('test://mixed-content-resource', 'application/json', '{"test":"data","value":123}'),
    ],
  },
  test_error_handling: {
    isError: true,
    content: [text('This tool intentionally returns an error for testing')],
  },
  test_logging_tool: { content: [text('Nothing was logged.')] },
  json_schema_2020_12_tool: { content: [text('ok')] },
}

const address = {
  $anchor: 'addressDef',
  type: 'object',
  properties: { street: { type: 'string' }, city: { type: 'string' } },
}

const SCHEMA_2020_12 = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  type: 'object',
  $defs: { address },
  properties: {
    name: { type: 'string' },
    address: { $ref: '#/$defs/address' },
    contactMethod: { type: 'string', enum: ['phone', 'email'] },
    phone: { type: 'string' },
    email: { type: 'string' },
  },
  allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
  if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
  // oxlint-disable-next-line unicorn/no-thenable -- a keyword of JSON Schema
  then: { required: ['phone'] },
  else: { required: ['email'] },
  additionalProperties: false,
}

const READS: Readonly<Record<string, object>> = {
  'test://static-text': { mimeType: 'text/plain', text: 'This is the content of the static text resource.' },
  'test://static-binary': { mimeType: 'image/png', blob: PNG },
  'test://template/123/data': { mimeType: 'application/json', text: '{"id":"123","templateTest":true}' },
}

export const conformanceSurface: Surface = {
  tools: () => JSON.stringify(Object.keys(ANSWERS).map(toolNamed)),
  call(_asking, name) {
    const answer = ANSWERS[name]
    if (answer === undefined) throw new UnknownTool(name)
    return Promise.resolve(answer as Result)
  },
  templates: [
    { uriTemplate: 'test://template/{id}/data', name: 'template', title: 'Template', description: 'A test.' },
  ],
  resources: () =>
    Promise.resolve(
      Object.keys(READS).map((uri) => ({ uri, name: uri, title: uri, mimeType: 'application/octet-stream' })),
    ),
  read(_asking, uri) {
    const found = READS[uri]
    if (found === undefined) throw new Fault('NOT_FOUND', { uri })
    return Promise.resolve({ uri, ...found } as Awaited<ReturnType<Surface['read']>>)
  },
  complete: () => Promise.resolve([]),
  mostBytes: () => 1024 * 1024,
}

function toolNamed(name: string): Tool {
  const isSchema = name === 'json_schema_2020_12_tool'
  const inputSchema = isSchema ? SCHEMA_2020_12 : { type: 'object', properties: {} }
  return { name, title: name, description: 'For the suite.', inputSchema } as unknown as Tool
}
