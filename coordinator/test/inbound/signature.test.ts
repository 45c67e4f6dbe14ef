import assert from 'node:assert/strict'
import { createHmac, randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { sign as signAsGithub } from '@octokit/webhooks-methods'
import { BearerScheme, HmacScheme } from '@windlass/shared/model/connection.ts'
import { Webhook as Standard } from 'standardwebhooks'
import { Stripe } from 'stripe'
import { Webhook as Svix } from 'svix'
import { type Auth, beginCheck, type Verdict } from '../../inbound/rules/signature.ts'

const NOW = 1_795_165_200_000
const SECONDS = NOW / 1000
const MIN_MS = 60_000
const BODY = '{"type":"invoice.paid","data":{"text":"Zürich 😀"}}'
const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`
const secret = newSecret()

interface Delivered {
  auth: Auth
  headers: Record<string, string>
  body?: string | Buffer
  secrets?: string[]
  at?: number
}

/** The body comes in pieces of three bytes, which cut characters. */
function verdictOf({ auth, headers, body = BODY, secrets = [secret], at = NOW }: Delivered): Verdict {
  const url = 'https://windlass.example/v1/inbound/conn_1'
  const check = beginCheck(auth, { head: { method: 'POST', url, headers }, secrets, at })
  const bytes = Buffer.from(body)
  for (let from = 0; from < bytes.length; from += 3) check.update(bytes.subarray(from, from + 3))
  return check.end()
}

/** What its sender has signed is taken; what is altered, of another secret, too old or too early is not. */
function holds(delivered: Delivered, hasTime = true): void {
  const body = Buffer.from(delivered.body ?? BODY)
  const altered = Buffer.from(body)
  altered[altered.length - 2]! ^= 1
  assert.equal(verdictOf(delivered).isVerified, true)
  assert.equal(verdictOf({ ...delivered, secrets: [newSecret(), secret] }).isVerified, true, 'the secret of before')
  assert.equal(verdictOf({ ...delivered, body: altered }).isVerified, false, 'altered')
  assert.equal(verdictOf({ ...delivered, body: Buffer.concat([body, Buffer.from(' ')]) }).isVerified, false, 'longer')
  assert.equal(verdictOf({ ...delivered, secrets: [newSecret()] }).isVerified, false, 'foreign')
  assert.equal(verdictOf({ ...delivered, secrets: [] }).isVerified, false, 'no secret')
  assert.equal(verdictOf({ ...delivered, headers: {} }).isVerified, false, 'no signature')
  if (!hasTime) return
  assert.equal(verdictOf({ ...delivered, at: NOW + 6 * MIN_MS }).isVerified, false, 'old')
  assert.equal(verdictOf({ ...delivered, at: NOW - 6 * MIN_MS }).isVerified, false, 'early')
  assert.equal(verdictOf({ ...delivered, at: NOW + 4 * MIN_MS }).isVerified, true, 'late')
}

test('X-Windlass-Signature is what `openssl dgst -hmac "$SECRET"` makes of `t.body`', () => {
  const v1 = createHmac('sha256', secret).update(`${SECONDS}.${BODY}`).digest('hex')
  const header = `t=${SECONDS},v1=${v1}`
  holds({ auth: { kind: 'webhook' }, headers: { 'x-windlass-signature': header } })
  const once = { signatures: [Buffer.from(v1, 'hex').toString('base64')], ttlMs: 720_000 }
  // However it is written, it is the same signature.
  for (const written of [header, `${header},v1=00`, `x=1,${header}`, `t=${SECONDS}, v1=${v1.toUpperCase()}`])
    assert.deepEqual(
      verdictOf({ auth: { kind: 'webhook' }, headers: { 'x-windlass-signature': written } }),
      { isVerified: true, once },
      written,
    )
})

test('GitHub: as @octokit/webhooks-methods signs', async () => {
  const headers = { 'x-hub-signature-256': await signAsGithub(secret, BODY) }
  holds({ auth: { kind: 'github' }, headers }, false)
  const form = `payload=${encodeURIComponent(BODY)}`
  const signed = { 'x-hub-signature-256': await signAsGithub(secret, form) }
  assert.equal(verdictOf({ auth: { kind: 'github' }, headers: signed, body: form }).isVerified, true)
})

test('Stripe: as its own library signs, also with two signatures', () => {
  const stripe = new Stripe('sk_test_none')
  const sign = (by: string) =>
    stripe.webhooks.generateTestHeaderString({ payload: BODY, secret: by, timestamp: SECONDS })
  holds({ auth: { kind: 'stripe' }, headers: { 'stripe-signature': sign(secret) } })
  const both = `${sign(newSecret())},${sign(secret).split(',')[1]},v0=00`
  assert.equal(verdictOf({ auth: { kind: 'stripe' }, headers: { 'stripe-signature': both } }).isVerified, true)
})

test('Slack: v0 over version, time and body', () => {
  const body = 'token=x&command=%2Fdeploy&text=now'
  const v0 = createHmac('sha256', secret).update(`v0:${SECONDS}:${body}`).digest('hex')
  const headers = { 'x-slack-signature': `v0=${v0}`, 'x-slack-request-timestamp': String(SECONDS) }
  holds({ auth: { kind: 'slack' }, headers, body })
  const verdict = verdictOf({ auth: { kind: 'slack' }, headers, body })
  assert.deepEqual('once' in verdict && verdict.once?.signatures, [Buffer.from(v0, 'hex').toString('base64')])
})

test('Standard Webhooks: as standardwebhooks and svix sign', () => {
  const at = new Date(NOW)
  const own = new Standard(secret).sign('msg_1', at, BODY)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(SECONDS), 'webhook-signature': own }
  const auth: Auth = { kind: 'standard-webhooks' }
  holds({ auth, headers })
  const several = `v1a,AAAA ${new Standard(newSecret()).sign('msg_1', at, BODY)} ${own}`
  assert.equal(verdictOf({ auth, headers: { ...headers, 'webhook-signature': several } }).isVerified, true)
  assert.equal(verdictOf({ auth, headers: { ...headers, 'webhook-id': 'msg_2' } }).isVerified, false)
  assert.equal(verdictOf({ auth, headers: { ...headers, 'webhook-signature': own.slice(3) } }).isVerified, false)
  const svix = new Svix(secret).sign('msg_1', at, BODY)
  const theirs = { 'svix-id': 'msg_1', 'svix-timestamp': String(SECONDS), 'svix-signature': svix }
  assert.equal(verdictOf({ auth, headers: theirs }).isVerified, true)
  assert.equal(verdictOf({ auth, headers, secrets: [secret.slice(6)] }).isVerified, true, 'without whsec_')
  assert.equal(verdictOf({ auth, headers, secrets: ['whsec_-_-_'] }).isVerified, false, 'no base64')
})

test('a workflow webhook takes the headers of Standard Webhooks with the same secret', () => {
  const signature = new Standard(secret).sign('msg_1', new Date(NOW), BODY)
  const headers = { 'webhook-id': 'msg_1', 'webhook-timestamp': String(SECONDS), 'webhook-signature': signature }
  holds({ auth: { kind: 'webhook' }, headers })
})

const SIGNERS: readonly {
  who: string
  scheme: Parameters<typeof HmacScheme.parse>[0]
  text: string
  hash: string
  encoding: 'hex' | 'base64'
  headers?: Record<string, string>
}[] = [
  {
    who: 'Shopify',
    scheme: { header: 'X-Shopify-Hmac-SHA256', encoding: 'base64' },
    text: BODY,
    hash: 'sha256',
    encoding: 'base64',
  },
  {
    who: 'Linear',
    scheme: { header: 'Linear-Signature', encoding: 'hex' },
    text: BODY,
    hash: 'sha256',
    encoding: 'hex',
  },
  {
    who: 'Intercom',
    scheme: { header: 'X-Hub-Signature', encoding: 'hex', prefix: 'sha1=', algorithm: 'sha1' },
    text: BODY,
    hash: 'sha1',
    encoding: 'hex',
  },
  {
    who: 'Zoom',
    scheme: {
      header: 'X-Zm-Signature',
      encoding: 'hex',
      prefix: 'v0=',
      signed: 'v0:{timestamp}:{body}',
      timestampHeader: 'X-Zm-Request-Timestamp',
    },
    text: `v0:${SECONDS}:${BODY}`,
    hash: 'sha256',
    encoding: 'hex',
    headers: { 'x-zm-request-timestamp': String(SECONDS) },
  },
  {
    who: 'Zendesk',
    scheme: {
      header: 'X-Zendesk-Webhook-Signature',
      encoding: 'base64',
      signed: '{timestamp}{body}',
      timestampHeader: 'X-Zendesk-Webhook-Signature-Timestamp',
    },
    text: `${new Date(NOW).toISOString()}${BODY}`,
    hash: 'sha256',
    encoding: 'base64',
    headers: { 'x-zendesk-webhook-signature-timestamp': new Date(NOW).toISOString() },
  },
  {
    who: 'HubSpot',
    scheme: {
      header: 'X-HubSpot-Signature-v3',
      encoding: 'base64',
      signed: '{method}{url}{body}{timestamp}',
      timestampHeader: 'X-HubSpot-Request-Timestamp',
    },
    text: `POSThttps://windlass.example/v1/inbound/conn_1${BODY}${NOW}`,
    hash: 'sha256',
    encoding: 'base64',
    headers: { 'x-hubspot-request-timestamp': String(NOW) },
  },
]

for (const { who, scheme, text, hash, encoding, headers = {} } of SIGNERS)
  test(`${who}: by the generic scheme`, () => {
    const hmac = HmacScheme.parse(scheme)
    const signature = `${hmac.prefix}${createHmac(hash, secret).update(text).digest(encoding)}`
    const all = { ...headers, [hmac.header.toLowerCase()]: signature }
    holds({ auth: { kind: 'hmac', hmac }, headers: all }, hmac.timestampHeader !== undefined)
  })

test('a scheme whose header every object has finds what was sent, and no more', () => {
  for (const header of ['constructor', '__proto__']) {
    const schemes: Auth[] = [
      { kind: 'bearer', bearer: { header, prefix: '' } },
      { kind: 'hmac', hmac: HmacScheme.parse({ header, encoding: 'hex' }) },
    ]
    for (const auth of schemes) assert.equal(verdictOf({ auth, headers: {} }).isVerified, false)
  }
})

test('a bearer is compared as a whole, before any of the body has come', () => {
  const auth: Auth = { kind: 'bearer', bearer: BearerScheme.parse({}) }
  const shown = (text: string) => verdictOf({ auth, headers: { authorization: text } }).isVerified
  assert.equal(shown(`Bearer ${secret}`), true)
  assert.equal(shown(`bearer ${secret}`), true)
  assert.equal(shown(`Bearer ${secret}x`), false)
  assert.equal(shown(secret), false)
  const gitlab: Auth = { kind: 'bearer', bearer: BearerScheme.parse({ header: 'X-Gitlab-Token', prefix: '' }) }
  assert.equal(verdictOf({ auth: gitlab, headers: { 'x-gitlab-token': secret } }).isVerified, true)
  assert.equal(verdictOf({ auth: gitlab, headers: { authorization: `Bearer ${secret}` } }).isVerified, false)
})

test('a scheme whose time is not signed is refused', () => {
  const given = { header: 'X-Sig', encoding: 'hex', timestampHeader: 'X-Time' }
  assert.equal(HmacScheme.safeParse(given).success, false)
  assert.equal(HmacScheme.safeParse({ ...given, signed: '{timestamp}.{body}' }).success, true)
  assert.equal(HmacScheme.safeParse({ header: 'X-Sig', encoding: 'hex', signed: 'x' }).success, false)
  assert.equal(HmacScheme.safeParse({ header: 'X-Sig', encoding: 'hex', signed: '{body}{nonce}' }).success, false)
})
