import type { FaultCode } from '@windlass/shared/errors.ts'
import { type AnyOp, isForCallers, type Method } from '@windlass/shared/ops/op.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { pathNames, restRidesIn } from '@windlass/shared/ops/fill-route.ts'
import type { Call } from '../api/call.ts'
import { isPaged } from '../api/page.ts'
import { faultsOf } from '../api/faults-of.ts'
import type { Handlers } from '../api/index.ts'
import { bodyBytes, DEFAULT_SIZES, type Sizes } from '../sizes.ts'

/** A row with everything about it that need not be worked out again for each request. */
export interface Plan {
  readonly row: AnyOp
  readonly handle: (call: Call<never>) => unknown
  /** Fields that stand in the path, with the names under which the router hands them over. */
  readonly pathKeys: readonly (readonly [field: string, key: string])[]
  /** Number of slashes before the field that takes the rest of the path. */
  readonly restAfter: number | undefined
  /** Those of them that are to be there already. A name that a PUT gives to what it makes is content like its body. */
  readonly addressed: readonly string[]
  readonly ridesIn: 'query' | 'body'
  readonly bodyBytes: number
  /**
   * `orgReads`: what it reads grows with what the org has. `orgChanges`: it takes the lock of the org. `orgStops`: it
   * ends something, and does not wait for what it is to end. Undefined: it holds no connection of the pool, or has
   * bounds of its own.
   */
  readonly turns: 'orgReads' | 'orgCalls' | 'orgStops' | 'orgChanges' | 'orgPrograms' | undefined
  /** Asked for a pause and nothing else, it takes its turn among `orgStops`. */
  readonly pauses: boolean
  readonly scopedToOrg: boolean
  readonly scopedToRun: boolean
  readonly faults: ReadonlySet<FaultCode>
}

/** They answer one thing, for which they count a queue. */
const COUNTS: readonly string[] = ['runs.why', 'pools.demand']

/**
 * Those of many orgs share a statement; a trigger under a key, what a batch looks up, and each look of one who waits
 * for events, take a turn by themselves.
 */
const SHARING: readonly string[] = ['runs.trigger', 'runs.batch', 'runs.get', 'runs.events']

/** Groups whose changes lock their org. */
const LOCKING = /^(environments|variables|secrets)\./

function turnsOf(row: AnyOp): Plan['turns'] {
  if (isPaged(row) || COUNTS.includes(row.id)) return 'orgReads'
  if (row.method !== 'GET' && LOCKING.test(row.id)) return 'orgChanges'
  if (row.stops === true) return 'orgStops'
  return SHARING.includes(row.id) || row.carries === 'files' ? undefined : 'orgCalls'
}

/** All rows that share a path. */
export interface PathPlan {
  readonly path: string
  /** As the router has it. */
  readonly pattern: string
  readonly methods: Partial<Record<string, Plan>>
  /** As the header `Allow` wants it. */
  readonly allow: string
}

/** The router below us overlooks names of one character, such as `{n}`. */
function routerKey(name: string): string {
  return `in_${name}`
}

/** The table, by path. Throws when a row has no handler: then the process must not start. */
export function planPaths(handlers: Handlers, sizes: Sizes = DEFAULT_SIZES): PathPlan[] {
  const byPath = new Map<string, Plan[]>()
  for (const [group, rows] of Object.entries(ops)) {
    const handlersOfGroup = handlers[group as keyof Handlers] as Record<string, Plan['handle'] | undefined>
    for (const [name, row] of Object.entries(rows) as unknown as [string, AnyOp][]) {
      const plan = planRow(row, handlersOfGroup[name], sizes)
      for (const path of [row.path, ...(row.aliases ?? [])]) byPath.set(path, [...(byPath.get(path) ?? []), plan])
    }
  }
  return [...byPath].map(([path, plans]) => planPath(path, plans))
}

function planPath(path: string, plans: Plan[]): PathPlan {
  const methods: Partial<Record<string, Plan>> = {}
  for (const plan of plans) methods[plan.row.method] = plan
  // HEAD is GET without the body.
  if (methods['GET']) methods['HEAD'] = methods['GET']
  const order: readonly (Method | 'HEAD')[] = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']
  return {
    path,
    pattern: patternOf(path, plans[0]!.row),
    methods,
    allow: order.filter((method) => methods[method]).join(', '),
  }
}

function patternOf(path: string, { slashes }: AnyOp): string {
  const whole = slashes ? path.replace(/\{\w+\}$/, '*') : path
  return whole.replace(/\{(\w+)\}/g, (_, name: string) => `:${routerKey(name)}`)
}

function planRow(row: AnyOp, handle: Plan['handle'] | undefined, sizes: Sizes): Plan {
  if (!handle) throw new Error(`${row.id} has no handler; write one in coordinator/api`)
  const names = pathNames(row.path)
  return {
    row,
    handle,
    pathKeys: names.map((name) => [name, routerKey(name)]),
    restAfter: row.slashes && row.path.split('/').length - 1,
    addressed: names.filter((name) => row.method !== 'PUT' || name !== 'name'),
    ridesIn: restRidesIn(row),
    bodyBytes: bodyBytes(row.carries, sizes),
    turns: isForCallers(row) ? turnsOf(row) : row.credentials.includes('run') ? 'orgPrograms' : undefined,
    pauses: typeof row.stops === 'object',
    scopedToOrg: isForCallers(row) && names.includes('org'),
    scopedToRun: row.credentials.includes('run') && names.includes('run'),
    faults: faultsOf(row),
  }
}
