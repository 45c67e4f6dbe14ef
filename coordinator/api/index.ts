import type { ops } from '@windlass/shared/ops/index.ts'
import { account, keys, orgs, retention } from './accounts.ts'
import { audit } from './audit.ts'
import type { HandlersFor } from './call.ts'
import { connections } from './connections.ts'
import { deliveries } from './deliveries.ts'
import { events } from './events.ts'
import { environments, secrets, variables } from './environments.ts'
import { hooks } from './hooks.ts'
import { inputs } from './inputs.ts'
import { runnerSurface } from './runner-surface.ts'
import { jobs } from './jobs.ts'
import { pools, runners } from './runners.ts'
import { runs } from './runs.ts'
import { schedules } from './schedules.ts'
import { service } from './service.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import { webhooks } from './webhooks.ts'
import { workflows } from './workflows.ts'

/** A handler for every row of the table; one that is missing does not compile. */
export type Handlers = { [G in keyof typeof ops]: HandlersFor<G> }

type Groups =
  | typeof workflows
  | typeof runs
  | typeof schedules
  | typeof jobs
  | typeof events
  | typeof inputs
  | typeof environments
  | typeof variables
  | typeof secrets
  | typeof webhooks
  | typeof connections
  | typeof deliveries
  | typeof hooks
  | typeof pools
  | typeof runners
  | typeof keys
  | typeof orgs
  | typeof retention
  | typeof account
  | typeof audit
  | typeof runnerSurface
  | typeof service

export type HandlerNeeds = Needs<Groups>

export function createHandlers(deps: HandlerNeeds): Handlers {
  return {
    workflows: workflows(deps),
    runs: runs(deps),
    schedules: schedules(deps),
    jobs: jobs(deps),
    events: events(deps),
    inputs: inputs(deps),
    environments: environments(deps),
    variables: variables(deps),
    secrets: secrets(deps),
    webhooks: webhooks(deps),
    connections: connections(deps),
    deliveries: deliveries(deps),
    hooks: hooks(deps),
    pools: pools(deps),
    runners: runners(deps),
    keys: keys(deps),
    orgs: orgs(deps),
    retention: retention(deps),
    account: account(deps),
    audit: audit(deps),
    runnerSurface: runnerSurface(deps),
    service: service(deps),
  }
}
