// What the client needs of each row to send a request, without its schemas.
import { routeOf } from '@windlass/shared/ops/op.ts'
import { callerGroups } from './client.ts'

export function tableText(): string {
  const groups = Object.entries(callerGroups()).map(([name, rows]) => {
    const routes = Object.entries(rows).map(([call, row]) => `${call}: ${JSON.stringify(routeOf(row))},\n`)
    return `${name}: {\n${routes.join('')}},\n`
  })
  return `import type { Route } from '@windlass/shared/ops/op.ts'

/** The operations of a caller by group, as far as a request needs them. \`shared/ops\` has the rest. */
export const table = {
${groups.join('')}} as const satisfies Record<string, Record<string, Route>>
`
}
