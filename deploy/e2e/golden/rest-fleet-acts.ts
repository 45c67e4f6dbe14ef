import type { RestTranscript } from './rest.ts'

/** Pools and machines. */
export async function fleetActs(rest: RestTranscript): Promise<void> {
  await poolActs(rest)
  await runnerActs(rest)
}

async function poolActs(rest: RestTranscript): Promise<void> {
  const org = '/v1/orgs/rest/runner-pools'
  const { runnerPools } = await rest.act('list pools', `GET ${org}`)
  const { runnerPool } = await rest.act('make a pool', `POST ${org}`, { body: { name: 'builders' } })
  await rest.act('make the pool again', `POST ${org}`, { body: { name: 'builders' } })
  const path = `/v1/runner-pools/${runnerPool.id}`
  await rest.act('change a pool', `PATCH ${path}`, {
    body: { settings: { labels: ['gpu', 'zone:eu'], limits: { memoryMb: 2048 }, slots: 3 } },
  })
  await rest.act('change a pool wrongly', `PATCH ${path}`, { body: { settings: { slots: 0 } } })
  await rest.act('get a pool', `GET ${path}`)
  await rest.act('make a token', `POST ${path}/registration-tokens`, { body: { reusable: true, uses: 2 } })
  const { registrationTokens } = await rest.act('list tokens', `GET ${path}/registration-tokens`)
  await rest.act('revoke a token', `DELETE /v1/registration-tokens/${registrationTokens[0].id}`)
  await rest.act('ask for the demand of a pool', `GET ${org}/builders/demand`)
  await rest.act('delete a pool', `DELETE ${path}`)
  await rest.act('delete a pool in use', `DELETE /v1/runner-pools/${runnerPools[0].id}`)
}

async function runnerActs(rest: RestTranscript): Promise<void> {
  const { runners } = await rest.act('list runners', 'GET /v1/orgs/rest/runners')
  const path = `/v1/runners/${runners[0].id}`
  await rest.act('plan a drain', `GET ${path}/drain`)
  await rest.act('cordon', `POST ${path}/cordon`, { body: { reason: 'a look at its disk' } })
  await rest.act('drain in an epoch that is over', `POST ${path}/drain`, { body: { epoch: 0 } })
  const { run } = await rest.org.client.runs.trigger({ workflow: 'greet', input: { name: 'Ada' } })
  await rest.act('why a run waits for a runner', `GET /v1/runs/${run.id}/why`)
  await rest.act('the demand meanwhile', 'GET /v1/orgs/rest/runner-pools/default/demand')
  await rest.act('drain', `POST ${path}/drain`, { body: { reason: 'new kernel', deadlineMs: 3_600_000 } })
  await rest.act('resume', `POST ${path}/resume`)
  await rest.ended(run.id)
  await rest.act('get a runner', `GET ${path}`)
  await rest.act('deregister a runner that is online', `DELETE ${path}`)
}
