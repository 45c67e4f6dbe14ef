import type { AnyOp } from './op.ts'
import { account, keys, orgs } from './accounts.ts'
import { audit } from './audit.ts'
import { connections } from './connections.ts'
import { deliveries } from './deliveries.ts'
import { environments, secrets, variables } from './environments.ts'
import { events } from './events.ts'
import { hooks } from './hooks.ts'
import { inputs } from './inputs.ts'
import { jobs } from './jobs.ts'
import { pools } from './pools.ts'
import { runners } from './runners.ts'
import { runnerSurface } from './runner-surface.ts'
import { runs } from './runs.ts'
import { schedules } from './schedules.ts'
import { service } from './service.ts'
import { webhooks } from './webhooks.ts'
import { workflows } from './workflows.ts'

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
