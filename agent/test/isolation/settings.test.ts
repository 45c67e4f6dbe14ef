import assert from 'node:assert/strict'
import type { AgentFacts } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import type { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import test from 'node:test'
import { isolationChecks } from '../../isolation/checks.ts'
import { withAgent } from '../_kit/with-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { NO_LIMITS } from '../../isolation/plan.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT, ofUsers } from './requirements.ts'

const POOL = {
  isolation: 'process',
  network: 'host',
  slots: null,
  limits: NO_LIMITS,
  parkedMs: null,
  drainMs: null,
} as const
const users = ofUsers().uids
const RUN_UIDS = `${users.first}-${users.last}`

/** What it said last of itself, in whichever frame. */
function factsOf(fake: FakeCoordinator): AgentFacts | undefined {
  return [...fake.heard('hello'), ...fake.heard('heartbeat')].findLast(({ facts }) => facts)?.facts
}

withAgent('a run says with its start what was in force for it, and the agent in its facts', async ({ fake, agent }) => {
  const placement = fake.offer(await aProgram(`return 1`))
  await fake.ending(placement)
  const start = placement.entries[0]
  assert.ok(start?.[0] === 'start')
  assert.equal(start[2]?.user, 'agent')
  await until('the agent tells its isolation', () => factsOf(fake)?.isolation?.level === 'process')
  assert.ok(
    agent.lines.some(
      ({ name, warning }) => name === 'isolation.weak' && /WINDLASS_AGENT_RUN_UIDS/.test(String(warning)),
    ),
  )
})

if (!NEEDS_BUBBLEWRAP) {
  withAgent(
    'what the pool wants is in force, though its machine would be content with less',
    async ({ fake }) => {
      const placement = fake.offer(await aProgram(`return process.pid`))
      const ending = await fake.ending(placement)
      assert.deepEqual(ending, { how: 'returned', outputText: '2' })
      const start = placement.entries[0]
      assert.ok(start?.[0] === 'start' && start[2])
      assert.deepEqual([start[2].level, start[2].network], ['bubblewrap', 'none'])
    },
    { settings: { pool: { ...POOL, isolation: 'bubblewrap', network: 'none' } } },
  )
}

withAgent(
  'a machine that cannot give what is wanted takes no work, and says what would help',
  async ({ fake }) => {
    const unready = () => factsOf(fake)?.unready ?? []
    await until('it says so', () => unready().some(({ check }) => check === 'sandbox'))
    assert.match(
      unready()
        .map(({ message }) => message)
        .join(),
      /WINDLASS_AGENT_ISOLATION=bubblewrap/,
    )
    assert.equal(fake.polling(), 0)
  },
  { env: { WINDLASS_AGENT_NETWORK: 'none', WINDLASS_AGENT_ISOLATION: 'process' } },
)

if (!NEEDS_ROOT) {
  withAgent(
    'with users of their own, runs read neither key nor spool nor the environment of their agent',
    async ({ fake, folder }) => {
      const files = ['identity.json', 'spool', 'agent.lock', 'keys.json', 'status.json'].map(
        (name) => `${folder}/${name}`,
      )
      const program = await aProgram(
        `const fs = await import('node:fs'); const led = []
         for (const file of [...input.files, '/proc/' + input.pid + '/environ']) {
           try { fs.statSync(file).isDirectory() ? fs.readdirSync(file) : fs.readFileSync(file); led.push(file) } catch {}
         }
         return { led, uid: process.getuid(), groups: process.getgroups() }`,
      )
      const placement = fake.offer(program, { inputText: JSON.stringify({ files, pid: process.pid }) })
      const ending = await fake.ending(placement)
      assert.ok(ending.how === 'returned', JSON.stringify(ending))
      const { led, uid, groups } = JSON.parse(ending.outputText) as { led: string[]; uid: number; groups: number[] }
      assert.deepEqual(led, [])
      assert.ok(uid > users.first && uid <= users.last)
      assert.deepEqual(groups, [users.first, uid])
    },
    { env: { WINDLASS_AGENT_RUN_UIDS: RUN_UIDS } },
  )
}

test('a machine on which something cannot be killed takes no work, and says so', async () => {
  const stats = (survivors: number) => ({
    running: 0,
    spares: { booting: 0, ready: 0 },
    idle: 0,
    survivors,
    reaperPid: 1,
  })
  const checks = (survivors: number) =>
    isolationChecks(
      { isolation: () => Promise.resolve({ refusal: 'not asked for' }), stats: () => stats(survivors) },
      { set: () => {} },
    )
  const said = (survivors: number) =>
    checks(survivors)
      .find(({ name }) => name === 'survivors')
      ?.look()
  assert.equal(await said(0), undefined)
  assert.match((await said(2)) ?? '', /2 programs .* restart the machine/)
})
