// Starts in a home that an earlier start has left unfinished, or that somebody has emptied in part.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { processesMarked } from '../../tools/leftovers.ts'
import { type Instance, makeHome, startInstance } from '../_kit/instance.ts'
import { deploy, ended, programFiles, trigger } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'

const temp = makeHome()
const { home } = temp
const FIRST = 'First start. Deploying'
const UP = '"sentence":"Up in'

after(() => temp.remove())

async function agentEnvironment(instance: Instance): Promise<string> {
  return readFileSync(`/proc/${await instance.pidOf('agent')}/environ`, 'utf8')
}

test('a first start that was killed while it showed the example shows it at the next', async () => {
  const killed = await startInstance({ home })
  await killed.process.says(FIRST)
  killed.process.child.kill('SIGKILL')
  const next = await startInstance({ home })
  await next.process.says(UP)
  assert.ok(next.process.stderr().includes(FIRST))
  assert.match(next.process.stderr(), /lockfile-report completed/)
  assert.doesNotMatch(await agentEnvironment(next), /WINDLASS_AGENT_TOKEN/, 'programs could read an unused token')
  await next.stop()
})

test('with a new database the agent of the old one is registered anew, and the example is not shown again', async () => {
  await until('the end of the database', () => processesMarked(join(home, 'postgres')).length === 0)
  await rm(join(home, 'postgres'), { recursive: true })
  const instance = await startInstance({ home })
  await instance.process.says(UP)
  assert.match(instance.process.stderr(), /agent of \S+ It is registered anew/)
  assert.ok(!instance.process.stderr().includes(FIRST))
  const { runners } = await instance.client.runners.list({})
  assert.deepEqual(
    runners.map(({ name, status }) => [name, status]),
    [['local', 'online']],
  )
  await deploy(instance.client, programFiles('healthy'))
  assert.equal((await ended(instance.client, await trigger(instance.client, 'healthy', {}))).status, 'completed')
  await instance.stop()
})

test('an agent that was revoked keeps nothing else from starting, and is forgotten by a command', async () => {
  const before = await startInstance({ home })
  const [local] = (await before.client.runners.list({})).runners
  await before.client.runners.revoke({ runner: local!.id })
  await before.stop()
  const without = await startInstance({ home })
  await without.process.says(UP)
  assert.match(without.process.stderr(), new RegExp(`was revoked.*windlass runners deregister ${local!.id}`))
  await without.client.runners.deregister({ runner: local!.id })
  await without.stop()
  const anew = await startInstance({ home })
  await anew.process.says(UP)
  assert.deepEqual(
    (await anew.client.runners.list({})).runners.map(({ name, status }) => [name, status]),
    [['local', 'online']],
  )
  await anew.stop()
})
