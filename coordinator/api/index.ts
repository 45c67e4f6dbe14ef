import type { ops } from '@windlass/shared/ops/index.ts'
import { account, keys, orgs } from './accounts.ts'
import { audit } from './audit.ts'
import type { HandlersFor } from './call.ts'
import { environments, secrets, variables } from './environments.ts'
import { inputs } from './inputs.ts'
import { runnerSurface } from './runner-surface.ts'
import { pools, runners } from './runners.ts'
import { runs } from './runs.ts'
import { service } from './service.ts'
import { workflows } from './workflows.ts'

/** A handler for every row of the table; one that is missing does not compile. */
export type Handlers = { [G in keyof typeof ops]: HandlersFor<G> }

export const handlers: Handlers = {
  workflows,
  runs,
  inputs,
  environments,
  variables,
  secrets,
  pools,
  runners,
  keys,
  orgs,
  account,
  audit,
  runnerSurface,
  service,
}
