import { createSlices } from '../slices.ts'
import type { QueueFacts } from './store.ts'

/** No org and no pool has such a name: slugs have no underscore. */
const OTHER = '_other'

/**
 * The queues as Prometheus' text. Not by gauges of the registry: these are printed in one go, and what is set for one
 * scrape would be printed by another one that comes meanwhile.
 */
export async function queueText({ listed, rest }: QueueFacts): Promise<string> {
  const sums = rest.pools > 0 ? [{ org: OTHER, pool: OTHER, ...rest }] : []
  const depths: string[] = []
  const ages: string[] = []
  const slice = createSlices()
  for (const { org, pool, count, oldestSeconds } of [...listed, ...sums]) {
    const labels = `{org="${org}",pool="${pool}"}`
    depths.push(`windlass_queue_depth${labels} ${count}`)
    ages.push(`windlass_queue_oldest_seconds${labels} ${oldestSeconds}`)
    await slice()
  }
  return [
    ...gauge('queue_depth', 'Runs that wait for a runner of the pool.', depths),
    ...gauge('queue_oldest_seconds', 'How long the oldest of them has waited.', ages),
    ...gauge('queues_summed_up', 'Pools that have no figures of their own, but are in those of the pool `_other`.', [
      `windlass_queues_summed_up ${rest.pools}`,
    ]),
  ].join('\n')
}

function gauge(name: string, help: string, lines: readonly string[]): string[] {
  return [`# HELP windlass_${name} ${help}`, `# TYPE windlass_${name} gauge`, ...lines, '']
}
