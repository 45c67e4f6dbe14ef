import type { AnyOp } from './op.ts'
import type { Group } from './group.ts'
import * as account from './account/ops.ts'
import * as audit from './audit/ops.ts'
import * as connections from './connections/ops.ts'
import * as deliveries from './deliveries/ops.ts'
import * as environments from './environments/ops.ts'
import * as events from './events/ops.ts'
import * as hooks from './hooks/ops.ts'
import * as inputs from './inputs/ops.ts'
import * as jobs from './jobs/ops.ts'
import * as keys from './keys/ops.ts'
import * as orgs from './orgs/ops.ts'
import * as pools from './pools/ops.ts'
import * as retention from './retention/ops.ts'
import * as runnerSurface from './runner-surface/ops.ts'
import * as runners from './runners/ops.ts'
import * as runs from './runs/ops.ts'
import * as schedules from './schedules/ops.ts'
import * as secrets from './secrets/ops.ts'
import * as service from './service/ops.ts'
import * as variables from './variables/ops.ts'
import * as webhooks from './webhooks/ops.ts'
import * as workflows from './workflows/ops.ts'

/** The folders beside this file. Documents and help name the groups in this order. */
const folders = {
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
  runnerSurface,
  service,
}
type Folders = typeof folders

/** The operation table, by group. */
export type Ops = { readonly [G in keyof Folders]: Folders[G]['rows'] }
export const ops = of('rows') as Ops

/** What is said of each group. */
export const groups = of('group') as { readonly [G in keyof Ops]: Group }

function of(part: 'rows' | 'group'): unknown {
  return Object.fromEntries(Object.entries(folders).map(([name, folder]) => [name, folder[part]]))
}

/** All rows in a flat list. */
export const allOps: readonly AnyOp[] = Object.values(ops).flatMap(
  (group) => Object.values(group) as unknown as AnyOp[],
)
