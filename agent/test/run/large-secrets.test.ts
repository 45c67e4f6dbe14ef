import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentRun } from '../../run/agent-run.ts'
import { keepRedactors } from '../../run/redact/redactor-cache.ts'
import { createSecrets } from '../../run/secrets.ts'

const NEVER = new AbortController().signal

function aRun(run: string, epoch = 1): AgentRun {
  const offer = { run, epoch, token: 't', secrets: true, variables: {} }
  return { offer, unwanted: NEVER, secretBytes: 100 } as unknown as AgentRun
}

test('large secrets put a run off while those of others take all memory that there is for that', async () => {
  let secret = 'secret-of-run_a'
  const redactors = keepRedactors({ smallBytes: 0, largeBytes: 500_000 })
  const secrets = createSecrets({ secrets: async () => ({ KEY: secret }) }, 300, { redactors })
  const first = await secrets.read(aRun('run_a'))
  secret = 'secret-of-run_b'
  const notNow = { name: 'SecretsNotNow', message: /until other runs with large secrets end/ }
  await assert.rejects(secrets.read(aRun('run_b')), notNow)
  // A program that was taken back tells something already.
  assert.equal((await secrets.readAgain(aRun('run_c'), { KEY: secret }, NEVER))?.redactor.text(secret), '***')
  secrets.rests('run_c', 1)
  await assert.rejects(secrets.read(aRun('run_b')), notNow)
  secret = 'secret-of-run_a'
  assert.equal((await secrets.read(aRun('run_d')))?.redactor, first?.redactor)
  secrets.forget('run_a')
  secrets.rests('run_d', 1)
  secret = 'secret-of-run_b'
  assert.equal((await secrets.read(aRun('run_b')))?.redactor.text(secret), '***')
})

test('a placement that is over takes nothing from a newer one of its run', async () => {
  const redactors = keepRedactors({ smallBytes: 0, largeBytes: 500_000 })
  let answer = Promise.resolve({ KEY: 'secret-of-run_a' })
  const secrets = createSecrets({ secrets: () => answer }, 300, { redactors })
  const late = Promise.withResolvers<{ KEY: string }>()
  answer = late.promise
  const first = secrets.read(aRun('run_a', 1))
  answer = Promise.resolve({ KEY: 'secret-of-run_a' })
  await secrets.read(aRun('run_a', 2))
  secrets.rests('run_a', 1)
  late.resolve({ KEY: 'another-secret-of-run_a' })
  await assert.rejects(first, { name: 'SecretsNotNow' })
  secrets.rests('run_a', 1)
  answer = Promise.resolve({ KEY: 'secret-of-run_b' })
  await assert.rejects(secrets.read(aRun('run_b')), { name: 'SecretsNotNow' })
  secrets.rests('run_a', 2)
  assert.ok(await secrets.read(aRun('run_b')))
})

test('secrets that take too much memory to be found are refused, and nothing is kept of them', async () => {
  let secret = 'é"'.repeat(5_000)
  const redactors = keepRedactors({ mostBytes: 1_000_000 })
  const secrets = createSecrets({ secrets: async () => ({ KEY: secret }) }, 300, { redactors })
  for (let n = 0; n < 2; n++)
    await assert.rejects(secrets.read(aRun('run_a')), {
      name: 'SecretsTooLarge',
      message: /Keep what is large elsewhere/,
    })
  secret = 'a small one'
  assert.equal((await secrets.read(aRun('run_b')))?.redactor.text(secret), '***')
})
