import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import { anOrg } from '@windlass/coordinator/test/_kit/coordinator.ts'
import { createClient } from 'windlass/client'
import type { BenchInstance } from './bench-instance.ts'
import { reportDelays } from './delays.ts'
import { healthDelays } from './answer-delays.ts'
import { attack } from './hostile-org.ts'
import { peakMiB } from './processes.ts'
import { median } from './measure.ts'
import type { Report } from './row.ts'

const LOOKED_MS = 15_000
/** Answer time after which a load balancer would think that the coordinator is down. */
const MOST_MS = 250

/** Measures one org while a member of another sends hostile types, values, questions and keys. */
export async function benchHostile(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const { url, db } = instance
  const acme = await anOrg({ db }, 'acme')
  const owner = createClient({ url, org: acme.slug, apiKey: acme.apiKey })
  const quiet: number[] = []
  const besides: number[] = []
  const peaks: number[] = []
  for (let i = 0; i < repeats; i++) {
    quiet.push(...(await healthDelays(url, AbortSignal.timeout(LOOKED_MS / 3))))
    const { registrationToken } = await owner.pools.createToken({ pool: acme.poolId })
    const { key } = await mintApiKey(db, { orgId: acme.id, name: `attacker ${i}`, role: 'member' })
    const client = createClient({ url, org: acme.slug, apiKey: key })
    const over = AbortSignal.timeout(LOOKED_MS)
    const attacked = attack({ url, client, token: registrationToken.token, round: i }, over)
    const { peak, result } = await peakMiB(instance.coordinatorPid, () => healthDelays(url, over))
    besides.push(...result)
    peaks.push(peak)
    await attacked
  }
  reportDelays(report, { name: '/healthz, nothing else', samples: quiet, repeats })
  const name = '/healthz while another org is hostile'
  reportDelays(report, { name, samples: besides, repeats, most: { p99: MOST_MS } })
  report({ name: 'coordinator while another org is hostile, peak', value: median(peaks), unit: 'MiB', repeats: peaks })
}
