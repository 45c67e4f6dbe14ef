import { generateKeyPair, exportJWK } from 'jose'
import { createClient } from 'windlass/client'
import { anOrg } from '@windlass/coordinator/test/_kit/coordinator.ts'
import { aSession } from '@windlass/coordinator/test/_kit/credentials.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { BenchInstance } from './bench-instance.ts'
import { httpLoad, openPoster, type Target } from './http-load.ts'
import { startSimulatedAgent } from './simulated-agent.ts'

/**
 * What one org, or a stranger who knows an address of it, may send from hundreds of connections at once. Each of these
 * has kept the triggers of other orgs waiting for a second and more.
 */
export interface Flood {
  name: string
  /** Sends until the signal fires. */
  send(this: void, signal: AbortSignal): Promise<void>
}

const CONNECTIONS = 600
/** Each makes a runner, of which a token makes so many at most. */
const REGISTRATIONS = { connections: 300, uses: 1000 }
/** Until the run whose token is used has come to its agent. */
const OFFERED_MS = 30_000

export async function floodsOf(instance: BenchInstance): Promise<Flood[]> {
  const { url, db } = instance
  const org = await anOrg({ db }, 'flood')
  const client = createClient({
    url,
    org: org.slug,
    apiKey: org.apiKey,
    session: await aSession(db, { orgId: org.id }),
  })
  const files = { 'workflow.jsonc': '{ "slug": "flood" }', 'index.ts': 'export const run = () => 1' }
  await client.workflows.create({ files: Object.entries(files).map(([path, content]) => ({ path, content })) })
  const tokenOf = async (uses: number) =>
    (await client.pools.createToken({ pool: org.poolId, reusable: true, uses })).registrationToken.token

  await client.webhooks.set({ workflow: 'flood', auth: 'bearer' })
  const { webhook } = await client.webhooks.rotate({ workflow: 'flood' })
  const unsigned = { url, path: `/v1/hooks/${webhook.id}`, apiKey: 'nobody', body: '{}' }

  const offer = await anOffer(url, await tokenOf(1), () => client.runs.trigger({ workflow: 'flood' }))
  const ofRun = { url, path: `/runner/v1/runs/${offer.run}`, apiKey: offer.token, method: 'GET' } as const

  const document = { url, path: '/v1/openapi.json', apiKey: org.apiKey, method: 'GET' } as const
  const unchanged = { ...document, headers: { 'If-None-Match': await etagOf(document) } }

  const { publicKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
  const { x } = await exportJWK(publicKey)
  const key = { kty: 'OKP', crv: 'Ed25519', x }
  const agent = { name: 'flood', publicKey: key, slots: 1, version: 'flood', platform: process.platform }

  const http =
    (target: Target, connections = CONNECTIONS) =>
    async (signal: AbortSignal) => {
      await httpLoad({ ...target, connections, until: signal })
    }
  return [
    { name: 'deliveries without a signature', send: http(unsigned) },
    { name: "requests with a run's token", send: http(ofRun) },
    { name: 'looks whether the OpenAPI document has changed', send: http(unchanged) },
    {
      name: 'registrations with one token',
      async send(signal) {
        const body = JSON.stringify({ ...agent, token: await tokenOf(REGISTRATIONS.uses) })
        await http({ url, path: '/runner/v1/register', apiKey: '', body }, REGISTRATIONS.connections)(signal)
      },
    },
  ]
}

/** A run that was offered to an agent of the org, which holds it and does nothing as long as the instance is there. */
async function anOffer(url: string, token: string, trigger: () => Promise<unknown>): Promise<Offer> {
  const { promise, resolve, reject } = Promise.withResolvers<Offer>()
  const late = setTimeout(() => reject(new Error('no run was offered')), OFFERED_MS)
  try {
    await startSimulatedAgent({ url, token, slots: 1, onRun: resolve, onClosed: () => undefined })
    await trigger()
    return await promise
  } finally {
    clearTimeout(late)
  }
}

async function etagOf(target: Target): Promise<string> {
  const poster = await openPoster(target)
  const { head } = await poster.post()
  poster.close()
  const [, etag] = /\r\netag: *(\S+)/i.exec(head) ?? []
  if (etag === undefined) throw new Error(`${target.path} has no etag`)
  return etag
}
