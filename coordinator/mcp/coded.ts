import type { FaultCode } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'

/** Numbers of JSON-RPC. */
const METHOD_NOT_FOUND = -32_601
const INVALID_PARAMS = -32_602
const INTERNAL_ERROR = -32_603

/** Every error of the protocol is printed like this; a text that holds it may be one. */
const ERROR = /"code":-\d/

function codeOf({ code, data }: JsonRpcError): FaultCode {
  // A resource that is not there is told apart from other params that do not fit by its address alone.
  if (code === METHOD_NOT_FOUND || data?.['uri'] !== undefined) return 'NOT_FOUND'
  return code === INTERNAL_ERROR ? 'INTERNAL' : 'VALIDATION_FAILED'
}

export interface JsonRpcError {
  code: number
  message: string
  data?: Record<string, unknown>
}

interface Answer {
  error?: JsonRpcError
}

/** Writes our code into each error of an answer: `error.code` is a number of the protocol. */
export function coded(text: string): string {
  if (!ERROR.test(text)) return text
  const answers = JSON.parse(text) as Answer | Answer[]
  for (const { error } of [answers].flat()) if (error) Object.assign(error, withCode(reblamed(error)))
  return JSON.stringify(answers)
}

export function withCode(error: JsonRpcError): JsonRpcError {
  return { ...error, data: { code: codeOf(error), ...error.data } }
}

/** The library takes params that it cannot read for a fault of its own, and tells them as a list of issues. */
function reblamed(error: JsonRpcError): JsonRpcError {
  const issue = error.code === INTERNAL_ERROR ? firstIssueIn(error.message) : undefined
  return issue === undefined ? error : { ...error, code: INVALID_PARAMS, message: issue }
}

function firstIssueIn(message: string): string | undefined {
  if (!message.startsWith('[')) return undefined
  const [issue] = JSON.parse(message) as { path?: (string | number)[]; message?: string }[]
  return issue?.path && `${fieldPath(issue.path)}: ${issue.message}`
}
