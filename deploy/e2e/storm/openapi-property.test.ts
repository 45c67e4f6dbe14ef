// Requests that the OpenAPI document suggests, from fitting to hostile, at a live instance: whatever comes, the answer is one that
// the document promises. A round is a thousand of them. WINDLASS_TEST_SEED=<number> repeats them.
import assert from 'node:assert/strict'
import { Agent } from 'node:http'
import { test } from 'node:test'
import { setImmediate as aTurn } from 'node:timers/promises'
import * as fc from 'fast-check'
import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import { createSession } from '@windlass/coordinator/accounts/sessions.ts'
import { createClient } from 'windlass/client'
import { newId, type OrgId, type PoolId, type RunnerId } from '@windlass/shared/ids.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import type { Instance } from '../_kit/instance.ts'
import { type Document, operationsOf } from '../_kit/openapi.ts'
import { answerTo, wrongWith } from '../_kit/openapi-judge.ts'
import { type Ask, type Known, NOBODYS, requests } from '../_kit/openapi-requests.ts'
import { rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { deploy, trigger } from '../_kit/runs.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed } from '@windlass/shared/test/_kit/seed.ts'
import { until } from '../_kit/until.ts'

const REQUESTS = 1000
const LANES = 16
const BATCH = 40
/** To one operation, when chance has brought it no fitting request among all of those. */
const MORE = 3_000
/**
 * Chance does not make what these need, and they have tests of their own: a program that has changed under its run, a
 * signed delivery, a job that is under way.
 */
const NEEDS_MORE = new Set([
  'runsRestart',
  'hooksReceive',
  'hooksReceiveInbound',
  'deliveriesGet',
  'deliveriesPayload',
  'deliveriesReplay',
  'jobsCancel',
])
/** After these little else would succeed any more: they come at the end, and what undoes them behind them. */
const LAST = ['environmentsDelete', 'workflowsDisable', 'workflowsEnable', 'workflowsDelete', 'workflowsRestore']
const SHOWN = 10
const HOUR_MS = 3_600_000
const SPARES = 100

const seed = chosenSeed()
const { current, database } = fileInstance({ programs: [], onceUp })
let known: Known = {}
let credentials: string[] = []

const ENTRY = `import { requestInput } from 'windlass'
export async function run(): Promise<unknown> {
  return requestInput({ prompt: 'May it go on?', schema: { type: 'boolean' } })
}`

async function onceUp({ client, access }: Instance): Promise<void> {
  await client.pools.create({ name: NOBODYS })
  await deploy(client, {
    'workflow.jsonc': `{ "slug": "waits", "pool": "${NOBODYS}" }`,
    'index.ts': 'export async function run() {}',
  })
  await deploy(client, { 'workflow.jsonc': '{ "slug": "asks" }', 'index.ts': ENTRY })
  await client.environments.create({ name: 'staging' })
  // Bodies name the first one only: no run comes into this, and it can be deleted.
  await client.environments.create({ name: 'idle' })
  const runs = await several(() => trigger(client, 'waits'))
  // Only what has ended is retried, or read to its end.
  for (const run of runs.slice(0, SPARES / 2)) await client.runs.cancel({ run })
  // Nobody is told of these, or they would be cancelled before their questions are answered.
  await Promise.all(['asks', 'asks'].map((slug) => trigger(client, slug)))
  const inputs = await until('two questions', async () => {
    const asked = (await client.inputs.list({})).inputs
    return asked.length === 2 && asked.map(({ id }) => id)
  })
  const { runnerPools } = await client.pools.list({})
  const { runners } = await client.runners.list({})
  const { keys, session, viewer } = await mint(access.org)
  // Chance may make variables, or secrets, of all other names for good: then none of the other kind could be deleted.
  const person = createClient({ ...access, apiKey: session })
  for (const environment of [undefined, 'staging']) {
    await person.secrets.set({ name: 'SEALED', value: 'x', environment })
    await person.variables.set({ name: 'PLAIN', value: 'x', environment })
  }
  const spare = await spares(access.org)
  const { webhook } = await client.webhooks.get({ workflow: 'waits' })
  const { job } = await client.runs.bulkCancel({ filter: { tag: 'none' }, dryRun: true })
  const [tokens, schedules, connections] = await Promise.all([
    several(async () => (await client.pools.createToken({ pool: runnerPools[0]!.id })).registrationToken.id),
    several(async () => (await client.schedules.create({ workflow: 'waits', rate: '300d' })).schedule.id),
    several(async (n) => (await person.connections.create({ name: `spare-${n}`, kind: 'github' })).connection.id),
  ])
  credentials = [session, session, access.apiKey, access.apiKey, viewer]
  known = {
    org: [access.org],
    workflow: ['waits', 'asks'],
    run: runs,
    input: inputs,
    pool: [...runnerPools.map(({ id }) => id), ...spare.pools],
    runner: [...runners.map(({ id }) => id), ...spare.runners],
    // None of those by which the requests are made.
    key: keys,
    environment: ['staging', 'idle'],
    schedule: schedules,
    connection: connections,
    token: tokens,
    hook: [webhook.id],
    job: [job.id],
    name: ['GREETING', 'TOKEN', 'SEALED', 'PLAIN'],
    version: ['1'],
    path: ['index.ts', 'workflow.jsonc'],
    file: ['start.js', 'SHA256SUMS'],
  }
}

const several = <T>(make: (n: number) => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: SPARES }, (_, n) => make(n)))

/** What can be shut out and deleted, again and again. */
async function spares(org: string): Promise<{ pools: PoolId[]; runners: RunnerId[] }> {
  const { db } = database()
  const [{ id: orgId }] = await db<[{ id: OrgId }]>`select id from orgs where slug = ${org}`
  const pools = Array.from({ length: SPARES }, () => newId('pool'))
  const [home] = pools
  const runners = Array.from({ length: 4 * SPARES }, () => newId('rnr'))
  await db`
    insert into runner_pools (id, org_id, name)
    select id, ${orgId}, 'spare-' || n
    from unnest(${pools}::text[]) with ordinality as p (id, n)`
  await db`
    insert into runners (id, org_id, pool_id, name, public_key, slots, version, platform)
    select id, ${orgId}, ${home!}, 'spare-' || n, '{}', 1, '0.1.0', 'linux-x64'
    from unnest(${runners}::text[]) with ordinality as r (id, n)`
  await db`insert into runner_intake (runner_id) select unnest(${runners}::text[])`
  return { pools, runners }
}

async function mint(org: string): Promise<{ keys: string[]; session: string; viewer: string }> {
  const { db } = database()
  const [{ id: orgId }] = await db<[{ id: OrgId }]>`select id from orgs where slug = ${org}`
  const operator = { kind: 'operator', id: 'test', name: 'test', orgId, via: 'admin', requestId: null } as const
  const { secret } = await createSession(db, operator, { name: 'property', role: 'owner', lifeMs: HOUR_MS })
  const keys = await Promise.all([1, 2, 3].map((n) => mintApiKey(db, { orgId, name: `spare ${n}`, role: 'viewer' })))
  const viewer = await mintApiKey(db, { orgId, name: 'viewer', role: 'viewer' })
  return { keys: keys.map(({ id }) => id), session: secret, viewer: viewer.key }
}

test('whatever is asked, the answer is one that the document promises', async (t) => {
  const { url } = current().access
  const document = (await (await fetch(`${url}/v1/openapi.json`)).json()) as Document
  const operations = operationsOf(document)
  console.log(`${operations.length} operations; again: ${repeated(import.meta.filename, { SEED: seed })}`)
  const since = performance.now()
  const counts = new Map<string, number>()
  const good = new Set<string>()
  /** What an operation was refused with, and how often. */
  const refusals = new Map<string, Map<string, number>>()
  const wrong: string[] = []
  const agent = new Agent({ keepAlive: true, maxSockets: LANES })
  const inTurn = oneByOne()
  let begun = 0

  async function askFor(wanted: typeof operations, most: number, isEnough: () => boolean): Promise<void> {
    const arbitrary = requests({ document, operations: wanted, known, credentials })
    const last = begun + most
    // A few at a time: to make them takes as long as to answer them, and the service need not wait meanwhile.
    const next = (): Ask[] => {
      const numRuns = isEnough() ? 0 : Math.min(BATCH, last - begun)
      if (numRuns === 0) return []
      begun += numRuns
      return fc.sample(arbitrary, { numRuns, seed: seed + begun - numRuns })
    }
    const lane = async () => {
      for (let asks = await inTurn(next); asks.length > 0; asks = await inTurn(next)) {
        for (const ask of asks) await judge(ask)
      }
    }
    await Promise.all(Array.from({ length: LANES }, lane))
  }
  async function judge(ask: Ask): Promise<void> {
    const answer = await answerTo(url, ask, agent)
    counts.set(String(answer.status), (counts.get(String(answer.status)) ?? 0) + 1)
    if (answer.status < 300) good.add(ask.operation.id)
    else countRefusal(ask.operation.id, answer)
    const why = wrongWith(document, ask, answer)
    if (why !== undefined) wrong.push(`${askText(ask)}\n  ${answer.status} ${answer.text.slice(0, 300)}\n  ${why}`)
  }
  function countRefusal(id: string, { status, text }: { status: number; text: string }): void {
    const of = refusals.get(id) ?? new Map<string, number>()
    const why = `${status} ${text.replaceAll(/"requestId":"[^"]*"/g, '').slice(0, 200)}`
    refusals.set(id, of.set(why, (of.get(why) ?? 0) + 1))
  }
  const isLeft = ({ id }: { id: string }) => !good.has(id) && !NEEDS_MORE.has(id)
  for (const round of rounds({ test: 1, storm: 10 })) {
    await askFor(
      operations.filter(({ id }) => !LAST.includes(id)),
      REQUESTS,
      () => false,
    )
    t.diagnostic(`round ${round + 1}: ${begun} requests, ${good.size} operations have succeeded`)
  }
  const left = operations.filter(isLeft).toSorted((a, b) => LAST.indexOf(a.id) - LAST.indexOf(b.id))
  for (const operation of left) await askFor([operation], MORE, () => good.has(operation.id))
  agent.destroy()

  const sorted = [...counts].toSorted(([a], [b]) => a.localeCompare(b))
  console.log(
    `${begun} requests in ${Math.round((performance.now() - since) / 1000)} s: ${sorted.map(([status, count]) => `${count} × ${status}`).join(', ')}`,
  )
  assert.equal(wrong.length, 0, `${wrong.length} of ${begun}, seed ${seed}:\n${wrong.slice(0, SHOWN).join('\n')}`)
  // Else all that was looked at would be refusals.
  const never = operations.filter(isLeft).map(({ id }) => [id, mostOf(refusals.get(id))])
  assert.deepEqual(never, [], 'no request to these has succeeded')
  assert.equal((await fetch(`${url}/v1/me`, { headers: { authorization: `Bearer ${credentials[0]}` } })).status, 200)
})

/**
 * Makes one thing after the other, with a turn of the event loop in between: where all lanes made theirs in one turn, a
 * connection that was opened before said nothing for 10 s, and was closed.
 */
function oneByOne(): <T>(make: () => T) => Promise<T> {
  let before: Promise<unknown> = Promise.resolve()
  return (make) => {
    const made = before.then(() => aTurn()).then(make)
    before = made.catch(() => undefined)
    return made
  }
}

/** The refusals that came most often. */
function mostOf(counts = new Map<string, number>()): string[] {
  const sorted = [...counts].toSorted(([, a], [, b]) => b - a)
  return sorted.slice(0, SHOWN).map(([why, count]) => `${count} × ${why}`)
}

function askText({ operation, path, headers, body }: Ask): string {
  const { authorization = 'nobody', ...others } = headers
  return `${operation.id} ${operation.method} ${path.slice(0, 300)} as ${authorization.slice(7, 11)} ${JSON.stringify(others)} ${body?.slice(0, 300) ?? ''}`
}
