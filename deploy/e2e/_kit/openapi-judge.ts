import { request as send, type Agent } from 'node:http'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { Document, Schema } from './openapi.ts'
import type { Ask } from './openapi-requests.ts'

export interface Answer {
  status: number
  type: string
  requestId: string | undefined
  text: string
}

/** Of a stream the beginning is enough. */
const STREAM_MS = 50

/** Sends the path as it is, where `fetch` would tidy it up. */
export function answerTo(url: string, ask: Ask, agent: Agent): Promise<Answer> {
  const { operation, path, headers, body } = ask
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const outgoing = send({ agent, hostname, port, path, method: operation.method, headers, timeout: DEADLINE_MS })
    outgoing.on('timeout', () => outgoing.destroy(new Error(`no answer to ${operation.method} ${path}`)))
    outgoing.on('error', (error: NodeJS.ErrnoException) => {
      // The service closes a connection that was idle for 10 s, which a busy machine may be in between two requests.
      if (outgoing.reusedSocket && error.code === 'ECONNRESET') resolve(answerTo(url, ask, agent))
      else reject(error)
    })
    outgoing.on('response', (response) => {
      const type = (response.headers['content-type'] ?? '').split(';')[0] ?? ''
      const requestId = response.headers['x-request-id'] as string | undefined
      let text = ''
      const done = () => resolve({ status: response.statusCode ?? 0, type, requestId, text })
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk))
      // Also when it was cut, by us or by the service: then what came is too little to fit.
      response.on('close', done)
      response.on('error', () => response.destroy())
      if (type === 'text/event-stream') setTimeout(() => response.destroy(), STREAM_MS)
    })
    outgoing.end(body)
  })
}

/** What is wrong with an answer by the word of the document, or nothing. */
export function wrongWith(document: Document, { operation }: Ask, answer: Answer): string | undefined {
  if (answer.status >= 500) return 'an error of the service'
  const promised = operation.responses[String(answer.status)]
  if (!promised) return 'a status that is not in the document'
  if (!answer.requestId) return 'no X-Request-Id'
  if (!promised.content) return answer.text === '' ? undefined : 'a body where the document has none'
  const content = promised.content[answer.type]
  if (!content) return `the type ${answer.type}, which is not in the document`
  if (answer.type !== 'application/json') return undefined
  const value = parsed(answer.text)
  const fits = validatorFor(document, content.schema)
  if (!fits(value)) {
    const [misfit] = fits.errors ?? []
    return `a body that does not fit: ${misfit?.instancePath ?? ''} ${misfit?.message ?? ''}`
  }
  return answer.status < 400 ? undefined : wrongRefusal(value, promised)
}

const validators = new Map<Schema, ValidateFunction>()

/**
 * Caches a validator for each schema of the document: to make it takes far longer than to use it. It is not the
 * service's own: that gives up after a quarter of a second of the clock, which a busy machine can take for any answer.
 */
function validatorFor(document: Document, schema: Schema): ValidateFunction {
  const known = validators.get(schema)
  if (known) return known
  const ajv = new Ajv2020({ strict: false, strictNumbers: true, logger: false })
  addFormats.default(ajv)
  const validate = ajv.compile({ ...schema, components: document.components })
  validators.set(schema, validate)
  return validate
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function wrongRefusal(value: unknown, promised: object): string | undefined {
  const { code, message } = (value as { error: { code: unknown; message: unknown } }).error
  if (typeof code !== 'string' || typeof message !== 'string' || message === '')
    return 'an envelope without code or message'
  return JSON.stringify(promised).includes(`\`${code}\``)
    ? undefined
    : `the code ${code}, which this status does not list`
}
