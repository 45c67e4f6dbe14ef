import type { Deprecation } from '@windlass/shared/ops/op.ts'

type Headers = readonly (readonly [name: string, value: string])[]

/** What a caller of a row is told that is going to be removed: RFC 9745 and RFC 8594. */
export function deprecationHeaders({ since, sunset, use }: Deprecation): Headers {
  return [
    ['deprecation', `@${seconds(since)}`],
    ['sunset', new Date(sunset).toUTCString()],
    ['link', `<${use}>; rel="successor-version"`],
  ]
}

const seconds = (day: string) => Math.floor(Date.parse(day) / 1000)
