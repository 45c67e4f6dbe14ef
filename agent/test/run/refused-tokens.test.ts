// Coordinators may not share clock or key: a token that one has made is refused by another.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import type { AgentRun } from '../../run/agent-run.ts'
import { createSecrets } from '../../run/secrets.ts'
import { aProgram } from '../_kit/bundle.ts'
import { answer, refuse } from '../_kit/http.ts'
import { withAgent } from '../_kit/with-agent.ts'

const KEY = 'correct horse battery staple'
const NEVER = new AbortController().signal

withAgent('a run whose token is refused gets another one, and begins with that', async ({ fake }) => {
  fake.secrets = (response) => {
    if (fake.secretReads.at(-1)?.token === 'renewed') answer(response, 200, { secrets: { KEY } })
    else refuse(response, 401, 'UNAUTHENTICATED')
  }
  const placement = fake.offer(await aProgram('return process.env.KEY.length'), { secrets: true })
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: String(KEY.length) })
  const { run, epoch } = placement.offer
  assert.deepEqual(fake.heard('renew')[0]?.runs, [[run, epoch]])
})

test('a run whose tokens are refused for a while is put off, and asks for others meanwhile', async () => {
  const old = new ApiError('old', { status: 401, code: 'UNAUTHENTICATED' })
  let reads = 0
  const refuses = () => {
    reads += 1
    return Promise.reject(old)
  }
  const secrets = createSecrets({ secrets: refuses }, 1_000)
  const asked: AgentRun[] = []
  secrets.onOldToken((agentRun) => asked.push(agentRun))
  const agentRun = { offer: { run: 'run_x', token: 't', secrets: true }, unwanted: NEVER } as unknown as AgentRun
  await assert.rejects(secrets.read(agentRun), { name: 'SecretsNotNow', message: /could not be read: old/ })
  assert.ok(reads >= 2, `${reads} reads`)
  assert.equal(asked.length, reads - 1)
  assert.ok(asked.every((each) => each === agentRun))
})
