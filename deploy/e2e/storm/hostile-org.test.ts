/** A member of one org does all that is allowed to him, so that the others wait. They do not notice. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import { anOrg } from '@windlass/coordinator/test/_kit/coordinator.ts'
import { createClient } from 'windlass/client'
import { healthDelays } from '../../load/answer-delays.ts'
import { attack, outcomesText } from '../../load/hostile-org.ts'
import { percentile } from '../../load/measure.ts'
import { amount } from '../../../shared/test/_kit/rounds.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { ended, trigger } from '../_kit/runs.ts'

const ATTACKED_MS = amount({ test: 10_000, storm: 30_000 })

// The limits that everybody has: nothing here is more than what a key allows.
const env = {
  WINDLASS_LIMIT_IDENTITY_PER_MIN: '600',
  WINDLASS_LIMIT_ORG_PER_MIN: '6000',
  WINDLASS_LIMIT_REFUSED_PER_MIN: '300',
}
const { current, database } = fileInstance({ env, programs: ['healthy'] })

test('runs of one org come to their end at once while another org is hostile', async (t) => {
  const instance = current()
  const { access, client } = instance
  const pid = await instance.pidOf('coordinator')
  const acme = await anOrg(database(), 'acme')
  const owner = createClient({ url: access.url, org: acme.slug, apiKey: acme.apiKey })
  const { registrationToken } = await owner.pools.createToken({ pool: acme.poolId })
  const { key } = await mintApiKey(database().db, { orgId: acme.id, name: 'attacker', role: 'member' })
  const attacker = createClient({ url: access.url, org: acme.slug, apiKey: key })

  const over = AbortSignal.timeout(ATTACKED_MS)
  const attacked = attack({ url: access.url, client: attacker, token: registrationToken.token }, over)
  const health = healthDelays(access.url, over)
  let completed = 0
  while (!over.aborted) {
    const run = await ended(client, await trigger(client, 'healthy', { takesMs: 100 }), 60_000)
    // Neither fenced nor begun anew: no agent was kept from its coordinator.
    assert.deepEqual([run.status, run.attempt], ['completed', 1])
    completed++
  }
  const [outcomes, waits] = await Promise.all([attacked, health])
  const [p50, p99] = [percentile(waits, 0.5), percentile(waits, 0.99)]
  t.diagnostic(`${completed} runs; /healthz ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms of ${waits.length}`)
  t.diagnostic(outcomesText(outcomes))
  assert.equal(await instance.pidOf('coordinator'), pid, 'the coordinator was started anew')
  for (const [name, counts] of outcomes) assert.ok(counts.size > 0, `${name} was never done`)
  for (const name of ['inputs', 'keys']) assert.equal(outcomes.get(name)?.get('ok'), undefined, `${name} were taken`)
})
