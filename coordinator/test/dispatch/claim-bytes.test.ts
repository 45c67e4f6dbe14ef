import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offers } from '@windlass/shared/wire/offers.ts'
import { fittingOf } from '../../dispatch/fitting.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MIB = 1024 * 1024
const RUNS = 20
/** Twice as long in JSON, and four times in the JSON of an answer. */
const INPUT = '"'.repeat(MIB / 2 - 100)

let c: TestCoordinator
const agents: TestAgent[] = []
before(async () => (c = await aCoordinator()))
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

for (const slots of [1, 2]) {
  test(`large inputs are given out over several claims, in their order; each needs ${slots} of the slots`, async () => {
    const name = `large-${slots}`
    const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name })
    const { slug } = await aWorkflow(c, { descriptor: { pool: name, slots } })
    const runs: string[] = []
    for (let n = 0; n < RUNS; n++) runs.push((await aRun(c, { workflow: slug, input: INPUT })).id)
    const agent = await anAgent(c, { pool: runnerPool.id })
    agents.push(agent)
    const found: string[] = []
    while (found.length < RUNS) {
      const offers = await agent.poll((RUNS - found.length) * slots)
      assert.ok(offers.length > 0, 'what did not fit into one claim comes with the next')
      const bytes = offers.reduce((sum, { inputText }) => sum + inputText.length, 0)
      // More than that an agent on a slow line cannot read before the offers are over.
      assert.ok(bytes <= MIB, `${offers.length} runs with ${bytes} bytes of input at once`)
      found.push(...offers.map(({ run }) => run).sort())
    }
    assert.deepEqual(found, runs)
  })
}

// Each offer had its own copy of the variables: one answer had 267 MB, or was longer than a text can be.
test('runs that are given the same variables are told them once', async () => {
  const name = 'variables'
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name })
  const { slug } = await aWorkflow(c, { descriptor: { pool: name } })
  await c.call(ops.environments.create, { org: c.org, name })
  await c.call(ops.variables.set, { org: c.org, environment: name, name: 'LARGE', value: '\u0001'.repeat(60_000) })
  for (const environment of [name, name, undefined]) await aRun(c, { workflow: slug, environment })
  const agent = await anAgent(c, { pool: runnerPool.id })
  agents.push(agent)
  const token = await agent.token()
  const { offers, variableSets } = await c.call(ops.runnerSurface.claims, { slots: 3 }, { apiKey: token })
  const given = offers.map(({ variables }) => variables)
  assert.deepEqual([given[0], new Set(given).size, Object.keys(variableSets).length], [given[1], 2, 2])
  assert.equal(variableSets[given[0]!]?.['LARGE']?.length, 60_000)
})

const anOffer = (inputText: string, variables: string) =>
  ({ inputText, variables, journal: { entries: 0, text: null } }) as Offers['offers'][number]

test('an answer has 2 MiB at most, and one offer in any case; no more variables are read than it takes', async () => {
  const read: string[] = []
  const large = { LARGE: '\u0001'.repeat(MIB / 12) }
  const sets = {
    get(id: string) {
      read.push(id)
      return Promise.resolve(id === 'few' ? { A: 'a' } : large)
    },
  }
  const all = (variables: string, count: number) => Array.from({ length: count }, () => anOffer('1', variables))
  assert.equal((await fittingOf(sets, all('many', 256))).count, 256)
  const offers = ['0', '1', '2', '3', '4', '5'].flatMap((id) => all(id, 2))
  const { count, variableSets } = await fittingOf(sets, offers)
  assert.deepEqual([count, Object.keys(variableSets)], [6, ['0', '1', '2']])
  assert.deepEqual(read, ['many', '0', '1', '2', '3'])
  assert.equal((await fittingOf(sets, [anOffer('x'.repeat(40 * MIB), 'few'), ...all('few', 2)])).count, 1)
})
