import { ApiError } from './api-error.ts'

/**
 * Whether the service itself has said this. What a proxy answers in its place says nothing of what was asked for,
 * whatever its status is: a 404 there is of a proxy that knows no way to the service just now.
 */
export function isOurs({ code }: ApiError): boolean {
  return code !== 'UNREACHABLE' && code !== 'BAD_ANSWER'
}

/** What an answer outside 2xx says, if it is ours. */
export interface Refusal {
  code: string
  message: string
  detail?: Record<string, unknown>
}

/** Proxies and clouds have envelopes like it, with numbers or with words of their own. */
const OUR_CODE = /^[A-Z][A-Z0-9_]*$/

/** Undefined where the text is of somebody else. */
export function refusalIn(text: string): Refusal | undefined {
  const error = (json(text) as { error?: { code?: unknown; message?: unknown; detail?: Refusal['detail'] } } | null)
    ?.error
  if (typeof error?.code !== 'string' || !OUR_CODE.test(error.code)) return undefined
  return { code: error.code, message: String(error.message), ...(error.detail && { detail: error.detail }) }
}

function json(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Throws where a page stands in the place of an answer, such as the login of a proxy. One without a type is taken. */
export function assertType(response: Response, type: string, what: string): void {
  const { headers, url, status, body } = response
  const given = headers.get('content-type')
  if (given === null || given.startsWith(type)) return
  // One that has failed says so again.
  void body?.cancel().catch(() => undefined)
  throw new ApiError(`${url} answered ${status} with ${given} in place of ${what}`, { status, code: 'BAD_ANSWER' })
}
