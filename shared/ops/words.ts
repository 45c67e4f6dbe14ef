import { type AnyOp, isForCallers, isPublic } from './op.ts'
import type { Documented, ExamplesOf } from './example.ts'
import { FIELDS } from './fields.ts'
import { account } from './account/words.ts'
import { audit } from './audit/words.ts'
import { connections } from './connections/words.ts'
import { deliveries } from './deliveries/words.ts'
import { environments } from './environments/words.ts'
import { events } from './events/words.ts'
import { hooks } from './hooks/words.ts'
import { inputs } from './inputs/words.ts'
import { jobs } from './jobs/words.ts'
import { keys } from './keys/words.ts'
import { orgs } from './orgs/words.ts'
import { pools } from './pools/words.ts'
import { retention } from './retention/words.ts'
import { runners } from './runners/words.ts'
import { runs } from './runs/words.ts'
import { schedules } from './schedules/words.ts'
import { secrets } from './secrets/words.ts'
import { service } from './service/words.ts'
import { variables } from './variables/words.ts'
import { webhooks } from './webhooks/words.ts'
import { workflows } from './workflows/words.ts'

/** An example for every operation that is documented; one that is missing does not compile. */
export const examples: { readonly [G in keyof Documented]: ExamplesOf<G> } = {
  workflows,
  runs,
  schedules,
  jobs,
  events,
  inputs,
  environments,
  variables,
  secrets,
  webhooks,
  connections,
  deliveries,
  hooks,
  pools,
  runners,
  keys,
  orgs,
  retention,
  account,
  audit,
  service,
}

/** An example as whoever renders it reads it. */
export interface AnyExample {
  readonly about: string
  readonly input: Record<string, unknown>
  readonly output: unknown
  readonly fields?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly bytes?: { readonly types: readonly string[]; readonly hasEtag: boolean }
}

const byId = new Map<string, AnyExample>(
  Object.entries(examples).flatMap(([group, rows]) =>
    Object.entries(rows).map(([name, example]) => [`${group}.${name}`, example as AnyExample] as const),
  ),
)

/** By the id of the row, for rows that are documented. */
export function exampleOf(row: Pick<AnyOp, 'id'>): AnyExample {
  const found = byId.get(row.id)
  if (!found) throw new Error(`${row.id} has no example; write one in words.ts of its folder in shared/ops`)
  return found
}

/** Whether it belongs to the public surface; what agents and programs speak does not. */
export function isDocumented(row: AnyOp): boolean {
  return (isPublic(row) || isForCallers(row)) && !row.path.startsWith('/runner/')
}

interface Layer {
  readonly description?: string
  readonly def: { readonly innerType?: Layer }
}

/** What a field of a row's input means: by its schema, else by what stands beside the example, else by its name. */
export function meaningOf(row: AnyOp, field: string): string | undefined {
  let layer = (row.input.shape as Record<string, unknown>)[field] as Layer | undefined
  const own = exampleOf(row).fields?.[field]
  for (; layer; layer = layer.def.innerType) if (layer.description !== undefined) return layer.description
  return own ?? FIELDS[field]?.meaning
}
