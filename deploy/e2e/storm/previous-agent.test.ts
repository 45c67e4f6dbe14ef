// The agent of the protocol before, as it was built then, serves under the coordinator of today.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { OLDEST_PROTOCOL, PROTOCOL } from '@windlass/shared/wire/agent.ts'
import { ensurePool } from '../_kit/agents.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { makeHome } from '../_kit/instance.ts'
import { deploy, ended, get, hasSaid, programFiles, textsOf, trigger, wholeLog } from '../_kit/runs.ts'
import { watchScript, type Watched } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const PACKED = join(import.meta.dirname, `../previous/agent-protocol-${OLDEST_PROTOCOL}.tar.gz`)
const POOL = 'old'

const place = makeHome()
let agent: Watched | undefined
let pool: string

const { current } = fileInstance({
  programs: [],
  async onceUp({ client, access }) {
    const program = join(place.home, 'program')
    mkdirSync(program)
    execFileSync('tar', ['-xzf', PACKED, '-C', program])
    pool = await ensurePool(client, POOL)
    const { registrationToken } = await client.pools.createToken({ pool })
    agent = watchScript(join(program, 'agent.mjs'), {
      env: {
        WINDLASS_URL: access.url,
        WINDLASS_AGENT_TOKEN: registrationToken.token,
        WINDLASS_AGENT_HOME: join(place.home, 'state'),
        WINDLASS_AGENT_NAME: 'of-yesterday',
      },
    })
    await agent.says('link.up', 60_000)
    for (const name of ['healthy', 'listens']) await deploy(client, programFiles(name, { slug: name, pool: POOL }))
  },
  async beforeStop() {
    if (!agent) return
    agent.child.kill('SIGTERM')
    assert.equal(await agent.ended(), 0, agent.stderr())
  },
})
after(() => place.remove())

const runner = async () => (await current().client.runners.list({ pool: POOL })).runners[0]!

test('it is online, marked as old, and its owner is told how to upgrade it', async () => {
  const { status, protocol, upgrade, name } = await runner()
  assert.deepEqual([name, status, protocol], ['of-yesterday', 'online', OLDEST_PROTOCOL])
  assert.match(upgrade?.message ?? '', new RegExp(`protocol ${OLDEST_PROTOCOL}, this coordinator ${PROTOCOL}`))
  assert.equal(upgrade?.command, `curl -fsSL ${current().access.url}/install.sh | sh -s -- --upgrade`)
})

test('it claims runs and brings them to their end', async () => {
  const { client } = current()
  const ids = await Promise.all(Array.from({ length: 5 }, () => trigger(client, 'healthy', {})))
  for (const id of ids) {
    const { status, attempt, runner: by } = await ended(client, id)
    assert.deepEqual([status, attempt, by?.name], ['completed', 1, 'of-yesterday'])
  }
})

test('it holds a run over a crash of the coordinator, and hears of what is asked of it afterwards', async () => {
  const instance = current()
  const { client } = instance
  const id = await trigger(client, 'listens', { tag: 'x' })
  await hasSaid(client, id, 'log.stdout', 'begun x')
  process.kill((await instance.pidOf('coordinator'))!, 'SIGKILL')
  await agent!.says('link.down')
  const links = () => agent!.stderr().split('link.up').length
  const before = links()
  await until('the agent to be connected again', () => links() > before, { ms: 45_000 })
  assert.deepEqual([(await get(client, id)).status, (await get(client, id)).attempt], ['running', 1])
  await client.runs.cancel({ run: id, reason: 'enough' })
  assert.equal((await ended(client, id)).status, 'cancelled')
  assert.ok(textsOf(await wholeLog(client, id)).includes('tidied up x'))
})

test('it gets nothing of a pool that asks for more than it can, and goes on when the pool asks no more', async () => {
  const { client } = current()
  await client.pools.update({ pool, settings: { limits: { memoryMb: 512 } } })
  const id = await trigger(client, 'healthy', {})
  const why = await until('the reason to be told', async () => {
    const { runners } = (await client.runs.why({ run: id })).why
    return runners.find(({ name }) => name === 'of-yesterday')?.reason
  })
  assert.match(why, /too old/)
  assert.equal((await get(client, id)).status, 'queued')
  await client.pools.update({ pool, settings: { limits: { memoryMb: null } } })
  assert.equal((await ended(client, id)).status, 'completed')
})
