/** The parts of an OpenAPI 3.1 document that the property test reads. */
export interface Document {
  paths: Record<string, Record<string, Described>>
  components: Record<string, unknown> & { schemas: Record<string, Schema> }
}

interface Described {
  operationId: string
  parameters?: Parameter[]
  requestBody?: { content: Record<string, { schema: Schema; example?: Record<string, unknown> }> }
  responses: Record<string, { content?: Record<string, { schema: Schema }> }>
}

export interface Parameter {
  in: 'path' | 'query' | 'header'
  name: string
  required?: boolean
  schema: Schema
}

export interface Schema {
  $ref?: string
  type?: string | string[]
  const?: unknown
  enum?: unknown[]
  anyOf?: Schema[]
  oneOf?: Schema[]
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  pattern?: string
  minLength?: number
  maxLength?: number
  minItems?: number
  maxItems?: number
  minimum?: number
  maximum?: number
}

export interface Operation {
  id: string
  method: string
  path: string
  parameters: Parameter[]
  body: Schema | undefined
  /** Of the body. */
  example: Record<string, unknown>
  responses: Described['responses']
}

export function operationsOf(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, described]) => ({
      id: described.operationId,
      method: method.toUpperCase(),
      path,
      parameters: described.parameters ?? [],
      body: described.requestBody?.content['application/json']?.schema,
      example: described.requestBody?.content['application/json']?.example ?? {},
      responses: described.responses,
    })),
  )
}

/** The schema itself, where it stands elsewhere in the document. */
export function resolved(document: Document, schema: Schema): Schema {
  const name = schema.$ref && /^#\/components\/schemas\/(\w+)$/.exec(schema.$ref)?.[1]
  const found = name === undefined || name === '' ? schema : document.components.schemas[name]
  if (!found) throw new Error(`the document has no ${schema.$ref}`)
  return found
}
