import { allOps, groups } from '@windlass/shared/ops/index.ts'
import type { Ops } from '@windlass/shared/ops/index.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import type { ApiError } from '../client/index.ts'
import { quoted } from './next-page.ts'

/** Where it shows whether a call was done whose answer is missing, and whether the same may be typed again. */
export function wayToLook({ operation, names }: Pick<ApiError, 'operation' | 'names'>, command: string) {
  const row = allOps.find(({ id }) => id === operation)
  if (!row) return undefined
  const look = LOOKS[row.id] ?? derivedLook(row)
  const again = filled(AGAIN[row.id] ?? derivedAgain(row, command), names)
  return look === undefined ? again : `${filled(look, names)} shows whether it was done all the same; ${again}`
}

/** Where that is not what shows the thing, or the list of its group. */
const LOOKS: Record<string, string> = {
  'runs.trigger': 'windlass runs list',
  'runs.batch': 'windlass runs list',
  'runs.retry': 'windlass runs list --trigger retry',
  'runs.bulkRetry': 'windlass jobs list',
  'runs.bulkCancel': 'windlass jobs list',
  'schedules.run': 'windlass runs list --trigger schedule',
  'deliveries.replay': 'windlass deliveries list',
  'workflows.update': 'windlass workflows versions {workflow}',
  'workflows.createVersion': 'windlass workflows versions {workflow}',
  'pools.createToken': 'windlass pools tokens {pool}',
  'pools.revokeToken': 'windlass pools tokens <pool>',
}

function derivedLook({ id, path }: AnyOp): string | undefined {
  const [group = ''] = id.split('.')
  const typed = `windlass ${groups[group as keyof Ops].short ?? group}`
  const get = allOps.find((row) => row.id === `${group}.get`)
  const given = pathNames(path)
  const wanted = get ? pathNames(get.path) : []
  if (get && wanted.every((name) => given.includes(name)))
    return [`${typed} get`, ...wanted.filter((name) => name !== 'org').map((name) => `{${name}}`)].join(' ')
  return allOps.some((row) => row.id === `${group}.list`) ? `${typed} list` : undefined
}

/** What was made is of no use to anybody who was not shown it, and some of it lets somebody in. */
const AGAIN: Record<string, string> = {
  'keys.create': 'windlass keys revoke <key> ends one that nobody has seen, then make another',
  'pools.createToken': 'windlass pools revoke-token <token> ends one that nobody has seen, then make another',
  'webhooks.rotate':
    'nobody has seen the secret, and with `--overlap 0s` no other serves: rotate again, which shows a new one',
  'connections.create':
    'nobody has seen a secret that it made: windlass connections set-secret <connection> --make shows a new one',
  'connections.setSecret':
    'nobody has seen a secret that it made, and with `--overlap 0s` no other serves: the same again shows a new one',
}

function derivedAgain(row: AnyOp, command: string): string {
  if (isIdempotent(row)) return `the same again does no harm: windlass ${command}`
  if (row.id === 'runs.batch' || 'idempotencyKey' in row.input.shape)
    return 'with an idempotency key the same may be sent again'
  return 'where it does not, the same again'
}

/** As MCP is told: PUT and DELETE are, and the others are not, unless their row says otherwise. */
function isIdempotent({ id, method, mcp }: AnyOp): boolean {
  if (OTHERWISE[id] !== undefined) return OTHERWISE[id]
  return mcp?.idempotent ?? (method === 'PUT' || method === 'DELETE')
}

/** Of rows that are no tools. */
const OTHERWISE: Record<string, boolean> = { 'connections.test': true }

function filled(text: string, names: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (_, name: string) => {
    const given = names[name]
    return given === undefined ? `<${name}>` : quoted(given)
  })
}
