import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { exampleOf } from '@windlass/shared/ops/words.ts'
import { SESSION, startFake } from '../_kit/fake-service.ts'
import { runCli } from '../_kit/run-cli.ts'

const outputOf = (id: string) => exampleOf({ id }).output as { secret: string; webhook: object }

test('the secret of a webhook is alone on standard output, and the overlap is a length of time', async (t) => {
  const { url, asked } = await startFake(t, { 'webhooks.rotate': () => outputOf('webhooks.rotate') })
  const args = ['webhooks', 'rotate', 'approval', '--overlap', '1h', '--session', SESSION]
  const { code, stdout, stderr } = await runCli(args, { url })
  assert.equal(code, 0, stderr)
  assert.equal(stdout, `${outputOf('webhooks.rotate').secret}\n`)
  assert.deepEqual(asked.at(-1)?.args, { org: 'acme', workflow: 'approval', overlapMs: 3_600_000 })
})

test('a webhook without a secret says what comes next', async (t) => {
  const { webhook } = outputOf('webhooks.get')
  const { url } = await startFake(t, { 'webhooks.get': () => ({ webhook: { ...webhook, rotatedAt: null } }) })
  const { stdout, stderr } = await runCli(['webhooks', 'get', 'approval'], { url })
  assert.match(stdout, /^https:\S+\/v1\/hooks\/hook_\w{26}\n$/)
  assert.match(stderr, /windlass webhooks rotate approval/)
})

test('the secret of a provider is read from standard input, and its scheme as JSON', async (t) => {
  const { url, asked } = await startFake(t, { 'connections.create': () => outputOf('connections.create') })
  const scheme = '{"header":"Linear-Signature","encoding":"hex"}'
  const args = ['connections', 'create', 'linear', '--kind', 'hmac', '--hmac', scheme, '--ask-secret']
  const { code, stderr } = await runCli([...args, '--session', SESSION], { url, input: 'the-secret\n' })
  assert.equal(code, 0, stderr)
  const sent = asked.at(-1)?.args ?? {}
  assert.deepEqual([sent['name'], sent['kind'], sent['secret']], ['linear', 'hmac', 'the-secret'])
  assert.equal((sent['hmac'] as { header: string }).header, 'Linear-Signature')
})

test('deliveries are a line each, with their runs or why there are none', async (t) => {
  const { url } = await startFake(t, { 'deliveries.list': () => outputOf('deliveries.list') })
  const { stdout } = await runCli(['deliveries', 'list'], { url })
  const cells = stdout.trimEnd().split('\t')
  assert.deepEqual(cells.slice(2), [
    'github-acme',
    'push',
    'filtered',
    '-',
    'The filter refuses the field `ref` of the payload.',
  ])
})

test('a replay says what became of it, and a payload comes out as it is', async (t) => {
  const { url, asked } = await startFake(t, {
    'deliveries.replay': () => outputOf('deliveries.replay'),
    'deliveries.payload': (_args, response) => {
      response.setHeader('content-type', 'application/json')
      response.end('{"ref":  1}')
    },
  })
  const id = newId('dlv')
  const { stdout } = await runCli(['deliveries', 'replay', id, '--idempotency-key', 'once'], { url })
  assert.match(stdout, /^dlv_\w{26}: triggered run_\w{26}\n$/)
  const { delivery, idempotencyKey } = asked.at(-1)?.args ?? {}
  assert.deepEqual([delivery, idempotencyKey], [id, 'once'])
  assert.equal((await runCli(['deliveries', 'payload', id], { url })).stdout, '{"ref":  1}')
})

test('on a terminal a payload shows what can be read of it, and in a pipe it is whole', async (t) => {
  const hostile = '\u001b]0;OWNED\u0007\u001b]52;c;cm0gLXJm\u0007\u001b[2J\u001b[1;1Hpaid\u009b\u202e\n\tby nobody'
  const { url } = await startFake(t, {
    'deliveries.payload': (_args, response) => {
      response.setHeader('content-type', 'text/plain')
      response.end(hostile)
    },
  })
  const args = ['deliveries', 'payload', newId('dlv')]
  assert.equal((await runCli(args, { url, isTerminal: true })).stdout, 'paid\n\tby nobody\n')
  assert.equal((await runCli(args, { url })).stdout, hostile)
})
