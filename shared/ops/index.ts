import type { AnyOp } from './op.ts'
import { account } from './account/ops.ts'
import { audit } from './audit/ops.ts'
import { connections } from './connections/ops.ts'
import { deliveries } from './deliveries/ops.ts'
import { environments } from './environments/ops.ts'
import { events } from './events/ops.ts'
import { hooks } from './hooks/ops.ts'
import { inputs } from './inputs/ops.ts'
import { jobs } from './jobs/ops.ts'
import { keys } from './keys/ops.ts'
import { orgs } from './orgs/ops.ts'
import { pools } from './pools/ops.ts'
import { runners } from './runners/ops.ts'
import { runnerSurface } from './runner-surface/ops.ts'
import { runs } from './runs/ops.ts'
import { schedules } from './schedules/ops.ts'
import { secrets } from './secrets/ops.ts'
import { service } from './service/ops.ts'
import { variables } from './variables/ops.ts'
import { webhooks } from './webhooks/ops.ts'
import { workflows } from './workflows/ops.ts'

/** The operation table, by group. */
export const ops = {
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
  account,
  audit,
  runnerSurface,
  service,
}
export type Ops = typeof ops

/** All rows in a flat list. */
export const allOps: readonly AnyOp[] = Object.values(ops).flatMap(
  (group) => Object.values(group) as unknown as AnyOp[],
)
