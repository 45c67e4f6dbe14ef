import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import path from 'node:path'
import { aProgram } from '../_kit/bundle.ts'
import { kindsOf } from '../_kit/durable.ts'
import { refuse } from '../_kit/http.ts'
import { until } from '../_kit/until.ts'
import { withAgent } from '../_kit/with-agent.ts'

withAgent(
  'a bundle that this host cannot keep puts the run off, and nothing of it has begun',
  async ({ fake, folder }) => {
    await until('it polls', () => fake.polling() > 0)
    await rm(path.join(folder, 'bundles'), { recursive: true })
    const told = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(told)
    assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
    assert.match(ending.reason, /ENOENT/)
    assert.deepEqual(kindsOf(told), ['end'])
  },
)

withAgent(
  'a program that gets no workspace has not begun',
  async ({ fake, folder }) => {
    await until('it polls', () => fake.polling() > 0)
    await rm(path.join(folder, 'workspaces'), { recursive: true })
    const told = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(told)
    assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
    assert.deepEqual(kindsOf(told), ['end'])
  },
  { env: { WINDLASS_AGENT_SPARES: '0' } },
)

withAgent('a journal that the service does not give is not blamed on the host', async ({ fake }) => {
  fake.journal = (response) => refuse(response, 404, 'NOT_FOUND')
  const told = fake.offer(await aProgram(`return 1`), { replay: true, journal: { entries: 3, text: null } })
  const ending = await fake.ending(told)
  assert.ok(ending.how === 'unready' && ending.blame === 'service', JSON.stringify(ending))
  assert.deepEqual(kindsOf(told), ['end'])
})
