import { isDocumented } from '@windlass/shared/ops/words.ts'
import { allOps, groups } from '@windlass/shared/ops/index.ts'
import { z } from 'zod'
import {
  type ZodOpenApiObject,
  type ZodOpenApiOperationObject,
  type ZodOpenApiOverride,
  createDocument,
} from 'zod-openapi'
import { HEADERS } from './openapi-answers.ts'
import { operation } from './openapi-operation.ts'

type Document = ReturnType<typeof createDocument>

/** The public surface at `base` as an OpenAPI 3.1 document. What agents and programs speak is left out. */
export function openApiDocument(version: string, base = '/'): Document {
  const paths: Record<string, Record<string, ZodOpenApiOperationObject>> = {}
  const rows = allOps.filter(isDocumented)
  for (const row of rows) paths[row.path] = { ...paths[row.path], [row.method.toLowerCase()]: operation(row) }
  const document: ZodOpenApiObject = {
    openapi: '3.1.0',
    info: { title: 'Windlass', version, summary: 'Deploys workflows and executes them as runs.', description: ABOUT },
    servers: [{ url: base, description: 'The coordinator that serves this document.' }],
    security: [{ apiKey: [] }, { session: [] }],
    tags: Object.entries(groups).flatMap(([name, { docs }]) =>
      docs === undefined ? [] : [{ name, description: docs }],
    ),
    paths,
    components: { headers: HEADERS, securitySchemes: SECURITY },
  }
  return createDocument(document, { override: plainer })
}

const ABOUT = `You deploy a package of files as a *workflow*; each execution of it is a *run*: a durable record with status, events, logs and output.

- **Who asks.** \`Authorization: Bearer <credential>\`. An API key (\`wl_…\`) may do what its role and scopes allow; operations that make or change credentials take a session (\`wls_…\`) only. What belongs to another org looks absent: 404.
- **Times** are integer milliseconds since the Unix epoch, their names end in \`At\`; lengths end in \`Ms\`, money is integer micro-dollars and ends in \`Micros\`.
- **Lists** answer \`nextCursor\`; send it as \`cursor\` for the next page, until it is null. A list in a query is one value with commas.
- **Conditional reads.** A GET answers an \`ETag\`; sent back as \`If-None-Match\` it is answered with 304 while nothing has changed.
- **Errors** have one form: \`{ "error": { code, message, detail? } }\`. Codes are stable; \`detail.path\` names the offending field. Every answer carries \`X-Request-Id\`, by which it is found in the log of the coordinator.
- **Limits.** Requests are counted for each credential and for each org, over REST and MCP together; \`RateLimit\` says what is left, and 429 carries \`Retry-After\`.
- **Unknown fields** are refused in what you send. What you get may gain fields: overlook those that you do not know.
- **MCP.** The same operations are tools for AI clients at \`/mcp/v1\` (streamable HTTP, the same credentials).`

const SECURITY = {
  apiKey: {
    type: 'http' as const,
    scheme: 'bearer',
    description: 'An API key: `wl_…`. It may do what its role and scopes allow.',
  },
  session: {
    type: 'http' as const,
    scheme: 'bearer',
    description: 'A session: `wls_…`, made by `windlass admin sessions create` on the host of the coordinator.',
  },
}

/** Answers may gain fields, so their schemas must not forbid them; and that whole numbers are safe ones goes without saying. */
const plainer: ZodOpenApiOverride = ({ jsonSchema, zodSchema, io }) => {
  const isOpen = zodSchema instanceof z.ZodObject && !zodSchema.def.catchall
  if (io === 'output' && isOpen) delete jsonSchema.additionalProperties
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
}
