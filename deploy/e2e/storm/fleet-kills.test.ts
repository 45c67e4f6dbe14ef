// kill -9 of an agent, again and again, while its runs print, take steps, sleep and wait for children.
// WINDLASS_TEST_ROUNDS=<number> kills that often, WINDLASS_TEST_SEED=<number> repeats the moments.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { startAgent, type TestAgent } from '../_kit/agents.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { familiesEnded, judge } from '../_kit/fleet-rules.ts'
import { metric, SHORT } from '../_kit/durable.ts'
import { rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { deploy, programFiles } from '../_kit/runs.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, type Random, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import type { Input, Part } from '../programs/fleet/index.ts'

/** Number of runs that are triggered for each kill. */
const RUNS = 4
const SETTLED_MS = 120_000
/** The most that kills of a few seconds' distance may cost. */
const MOST_GIVEN_UP = 0.01
const POOL = 'mortal'

const seed = chosenSeed()
const { current } = fileInstance({
  programs: [],
  env: { WINDLASS_AGENT_SPARES: '0', ...SHORT },
  beforeStop: async () => agent?.stop(),
})
let agent: TestAgent | undefined

test('whenever an agent is killed, it goes on with what waits, and begins anew what was executed', async (t) => {
  const { client, access, home } = current()
  console.log(`again: ${repeated(import.meta.filename, { SEED: seed })}`)
  const folder = join(home, 'ledgers')
  mkdirSync(folder)
  agent = await startAgent(current(), { name: POOL, pool: POOL, slots: 6 })
  await deploy(client, programFiles('fleet', { slug: 'killed', pool: POOL, process: 'reuse', retries: { crash: 100 } }))
  const random = randomOf(seed)
  const ids: string[] = []
  let kills = 0
  for (const kill of rounds({ test: 12, storm: 60 })) {
    for (let m = 0; m < RUNS; m++) {
      const input: Input = { folder, parts: partsOf(random) }
      ids.push((await client.runs.trigger({ workflow: 'killed', input })).run.id)
    }
    await wait(random.between(0, 1500))
    await agent.kill()
    kills = kill + 1
    await agent.start()
  }
  const all = await familiesEnded(client, ids, SETTLED_MS)
  // A run whose replay is lost six times in a row is given up: a program could be the reason as well.
  const runs = all.filter(({ status }) => status === 'completed')
  const others = all.filter(({ status }) => status !== 'completed').map(({ error }) => error?.message ?? '')
  assert.ok(others.length <= all.length * MOST_GIVEN_UP, `seed ${seed}: ${others.join('; ')}`)
  for (const message of others) assert.match(message, /before it was where it had stood/, `seed ${seed}`)
  const judged = await Promise.all(runs.map((run) => judge(client, run)))
  assert.deepEqual(
    judged.flatMap(({ wrong }) => wrong),
    [],
    `seed ${seed}`,
  )
  assert.equal(await metric(access.url, 'windlass_orphans_total'), 0)
  const lost = judged.reduce((sum, { attempts }) => sum + attempts - 1, 0)
  t.diagnostic(`killed ${kills} times: ${runs.length} runs, ${lost} attempts lost, ${others.length} given up`)
})

function partsOf(random: Random): Part[] {
  const short: Part = { lines: random.between(1, 30), takesMs: random.between(0, 200) }
  const asleep: Part = { ...short, next: { sleepMs: random.between(50, 2000) } }
  const stepped: Part = { ...short, next: { step: 'once' } }
  const child = { workflow: 'killed', parts: [short] }
  return random.pick<Part[]>([
    [short, short],
    [asleep, asleep, asleep, short],
    [stepped, asleep, stepped, short],
    [{ ...short, next: { child } }, short],
    [{ lines: 500, takesMs: 50 }, short],
  ])
}
