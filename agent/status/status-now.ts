import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import { resolveSettings, type AgentConfig } from '../config.ts'
import type { Facts } from '../facts.ts'
import type { Identity } from '../identity.ts'
import type { ThisStart } from '../instance.ts'
import type { Intake } from '../intake.ts'
import type { Bundles } from '../run/bundle/bundles.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { Slots } from '../run/slots.ts'
import type { Spool } from '../run/spool/spool.ts'
import { VERSION } from '../version.ts'
import type { Activity } from './activity.ts'
import type { AgentStatus } from './status.ts'

export type Who = Pick<Identity, 'runner' | 'org' | 'pool'>

interface MarkNeeds {
  activity: Activity
  facts: Facts
  intake: Intake
  agentRuns: AgentRuns
  settings: { readonly current: AgentSettings }
}

interface StatusNeeds extends MarkNeeds {
  config: Pick<AgentConfig, 'name' | 'url' | 'settings'>
  start: Pick<ThisStart, 'instance'>
  slots: Pick<Slots, 'total' | 'free'>
  spool: Pick<Spool, 'stats' | 'trouble'>
  bundles: Pick<Bundles, 'stats'>
}

export function statusNow(deps: StatusNeeds, who: Who): AgentStatus {
  const { activity, config, facts, intake, slots, spool } = deps
  const { labels, capabilities, isolation, unready } = facts.current()
  const { startedAt, connection, lastPollAt, lastHeartbeatAt, lastAckAt } = activity
  const { runner, org, pool } = who
  return {
    at: Date.now(),
    state: intake.isLeaving ? 'stopping' : 'working',
    pid: process.pid,
    instance: deps.start.instance.id,
    version: VERSION,
    runner,
    org,
    pool,
    name: config.name,
    url: config.url,
    startedAt,
    connection,
    lastPollAt,
    lastHeartbeatAt,
    lastAckAt,
    intake: { ...intake.notice, isLeaving: intake.isLeaving },
    unready,
    isolation,
    labels,
    capabilities,
    slots: { total: slots.total(), free: slots.free() },
    runs: runsOf(deps),
    spool: { ...spool.stats(), trouble: spool.trouble() ?? null },
    bundles: deps.bundles.stats(),
    settings: resolveSettings(config, deps.settings.current.pool),
  }
}

function runsOf({ agentRuns }: Pick<MarkNeeds, 'agentRuns'>): AgentStatus['runs'] {
  const began = Date.now() - performance.now()
  return agentRuns.all().map(({ offer, receivedAt, isParked }) => ({
    run: offer.run,
    attempt: offer.attempt,
    workflow: offer.workflow.slug,
    since: Math.round(began + receivedAt),
    isParked,
  }))
}

/** Changes whenever something has changed that a person would look for. */
export function markOf({ activity, facts, intake, agentRuns, settings }: MarkNeeds): string {
  const runs = agentRuns.all().map(({ offer, isParked }) => `${offer.run}/${offer.epoch}/${isParked}`)
  const { state, epoch } = intake.notice
  const pool = JSON.stringify(settings.current.pool)
  return [activity.connection.since, state, epoch, intake.isLeaving, facts.version, pool, ...runs].join()
}
