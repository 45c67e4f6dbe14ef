import { requestOf } from '@windlass/shared/ops/call.ts'
import { exampleOf } from '@windlass/shared/ops/words.ts'
import { type AnyOp, isForCallers, isSessionOnly } from '@windlass/shared/ops/op.ts'

const LINE = 100

/** The example of a row as a command that can be pasted. Who asks and where stands in the environment. */
export function curlOf(row: AnyOp): string {
  const { url, method, headers, body } = requestOf({ url: '$WINDLASS_URL' }, row, exampleOf(row).input)
  const parts = ['curl -s', `"${url.replace(/%5E|%2C/gi, (code) => decodeURIComponent(code))}"`]
  if (row.wire === 'sse') parts[0] = 'curl -sN'
  if (method !== (body === undefined ? 'GET' : 'POST')) parts.push(`-X ${method}`)
  if (isForCallers(row))
    parts.push(`-H "Authorization: Bearer $${isSessionOnly(row) ? 'WINDLASS_SESSION' : 'WINDLASS_API_KEY'}"`)
  if (body !== undefined) {
    parts.push(`-H 'Content-Type: ${headers['content-type']}'`)
    parts.push(`-d '${body.replaceAll("'", String.raw`'\''`)}'`)
  }
  const flat = parts.join(' ')
  return flat.length <= LINE
    ? flat
    : parts.join(' \\\n  ').replace('curl -s \\\n  ', 'curl -s ').replace('-sN \\\n  ', '-sN ')
}
