// A copy of a delivery by somebody who has read it, and cannot sign.
import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import { after, before, test } from 'node:test'
import { aConnection, aReceiverOf, type CreateConnection } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, type Hook, send } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

const hmacOf = (secret: string, text: string) => createHmac('sha256', secret).update(text).digest('hex')

test('of a delivery that two secrets have signed a copy with either signature starts nothing', async () => {
  const { slug } = await aWorkflow(c)
  const old = await aHook(c, session, slug)
  // From now on both serve.
  const hook = await aHook(c, session, slug)
  const [body, t] = ['{"pay":100}', Math.floor(Date.now() / 1000)]
  const [a, b] = [hmacOf(old.secret, `${t}.${body}`), hmacOf(hook.secret, `${t}.${body}`)]
  const outcomeWith = async ({ url }: Hook, ...signatures: string[]) => {
    const signed = [`t=${t}`, ...signatures.map((one) => `v1=${one}`)].join(',')
    const headers = { 'content-type': 'application/json', 'x-windlass-signature': signed }
    return (await send(url, { body, headers })).receipt.delivery.outcome
  }
  assert.equal(await outcomeWith(hook, a, b), 'triggered')
  for (const copied of [[a, b], [b], [a]]) assert.equal(await outcomeWith(hook, ...copied), 'duplicate')
})

test('of a delivery that its sender has signed anew a copy under another id starts nothing', async () => {
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  const now = Math.floor(Date.now() / 1000)
  const outcomeOf = async (id: string, t: number, body = '{"pay":100}') => {
    const signature = `t=${t},v1=${hmacOf(hook.secret, `${t}.${body}`)}`
    const headers = { 'content-type': 'application/json', 'webhook-id': id, 'x-windlass-signature': signature }
    return (await send(hook.url, { body, headers })).receipt.delivery.outcome
  }
  assert.equal(await outcomeOf('m1', now), 'triggered')
  for (const t of [now + 1, now + 2]) {
    assert.equal(await outcomeOf('m1', t), 'duplicate')
    assert.equal(await outcomeOf('copy', t), 'duplicate')
  }
  // Nobody has another one taken for a repetition before it comes.
  assert.equal(await outcomeOf('m1', now + 3, '{"pay":200}'), 'duplicate')
  assert.equal(await outcomeOf('m2', now + 3, '{"pay":200}'), 'triggered')
})

const TIMED = { header: 'x-sig', encoding: 'hex', idHeader: 'x-id', timestampHeader: 'x-t' } as const
const FOLLOWED: { of: CreateConnection; headers: [id: string, time: string, signature: string] }[] = [
  { of: { kind: 'standard-webhooks' }, headers: ['webhook-id', 'webhook-timestamp', 'webhook-signature'] },
  { of: { kind: 'hmac', hmac: { ...TIMED, signed: '{id}.{timestamp}.{body}' } }, headers: ['x-id', 'x-t', 'x-sig'] },
]
for (const { of, headers } of FOLLOWED)
  test(`where a time follows an id nobody makes another delivery out of a text in one: ${of.kind}`, async () => {
    const { name, secret, url } = await aConnection(c, session, of)
    await aReceiverOf(c, name, ['*'])
    const [idHeader, timeHeader, signatureHeader] = headers
    const time = Math.floor(Date.now() / 1000)
    const signed = `m1.${time}.{"text":"hello.${time}.amount=1000000"}`
    const isStandard = of.kind === 'standard-webhooks'
    const key = isStandard ? Buffer.from(secret.slice('whsec_'.length), 'base64') : secret
    const digest = createHmac('sha256', key).update(signed).digest()
    const signature = isStandard ? `v1,${digest.toString('base64')}` : digest.toString('hex')
    const statusWith = async (id: string, type: string) => {
      const body = signed.slice(`${id}.${time}.`.length)
      const all = { [idHeader]: id, [timeHeader]: String(time), [signatureHeader]: signature, 'content-type': type }
      return (await send(url, { body, headers: all })).status
    }
    const forged = signed.slice(0, signed.lastIndexOf(`.${time}.`))
    assert.equal(await statusWith(forged, 'application/x-www-form-urlencoded'), 401)
    assert.equal(await statusWith('m1', 'application/json'), 200)
  })

for (const signed of ['{id}.{body}', '{id}{body}'])
  test(`of ${signed} nobody moves the border between id and body`, async () => {
    const hmac = { header: 'x-sig', encoding: 'hex', signed, idHeader: 'x-id' } as const
    const { name, secret, url } = await aConnection(c, session, { kind: 'hmac', hmac })
    await aReceiverOf(c, name, ['*'])
    const body = '{"order":{"price":10.5,"to":"ada"}}'
    const text = signed.replace('{id}', 'm1').replace('{body}', body)
    const outcomeOf = async (id: string, body: string) => {
      const headers = { 'content-type': 'text/plain', 'x-id': id, 'x-sig': hmacOf(secret, text) }
      return (await send(url, { body, headers })).receipt.delivery.outcome
    }
    assert.equal(await outcomeOf('m1', body), 'triggered')
    assert.equal(await outcomeOf('m1', body), 'duplicate')
    const moved = '5,"to":"ada"}}'
    const between = signed === '{id}.{body}' ? 1 : 0
    assert.equal(await outcomeOf(text.slice(0, text.length - moved.length - between), moved), 'duplicate')
  })
