import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { eventOf, idOf } from '../../inbound/rules/events.ts'
import { newId } from '@windlass/shared/ids.ts'
import { createEffort, type Effort, type Pieces, TooMuchToCompare } from '../../inbound/rules/effort.ts'
import { fieldsOf } from '../../inbound/rules/fields.ts'
import { refusedBy as refusedIn } from '../../inbound/rules/filter.ts'
import { handshakeOf } from '../../inbound/rules/handshake.ts'
import { withoutCredentials } from '../../inbound/rules/headers.ts'
import { decide } from '../../inbound/rules/outcome.ts'
import { globOf, matchesEvent as meansEvent, matchesGlob as fits } from '../../inbound/rules/patterns.ts'
import { readPayload } from '../../inbound/rules/payload.ts'

type Filter = Parameters<typeof refusedIn>[0]
const refusedFor = (...asked: Parameters<typeof refusedIn>) => done(refusedIn(...asked)).value
const refusedBy = (filter: Filter, payload: unknown) => refusedFor(filter, payload, createEffort())
const matchesEvent = (pattern: string, event: string | null) => meansEvent(pattern, event, createEffort())
const fitsGlob = (pattern: string, text: string, effort: Effort) => fits(globOf(pattern, effort), text, effort)
const matchesGlob = (pattern: string, text: string) => fitsGlob(pattern, text, createEffort())

/** With the number of pieces. */
function done<T>(steps: Pieces<T>): { value: T; pieces: number } {
  for (let pieces = 1; ; pieces++) {
    const step = steps.next()
    if (step.done) return { value: step.value, pieces }
  }
}

test('a pattern means its own name and everything beneath it', () => {
  const yes = [
    ['pull_request', 'pull_request'],
    ['pull_request', 'pull_request.opened'],
    ['pull_request.*', 'pull_request'],
    ['pull_request.*', 'pull_request.opened'],
    ['*', 'anything'],
    ['*', null],
    ['*.created', 'issue.created'],
    ['*.created', 'customer.subscription.created'],
    ['invoice.*.failed', 'invoice.payment.failed'],
    ['command:/deploy', 'command:/deploy'],
    ['a*b*c', 'a.b.b.c'],
  ] as const
  const no = [
    ['pull_request', 'pull_request_review'],
    ['pull_request.opened', 'pull_request'],
    ['Pull_Request', 'pull_request'],
    ['push', null],
    ['*.created', 'created'],
    ['push', 'xpush'],
  ] as const
  for (const [pattern, event] of yes) assert.ok(matchesEvent(pattern, event), `${pattern} means ${event}`)
  for (const [pattern, event] of no) assert.ok(!matchesEvent(pattern, event), `${pattern} does not mean ${event}`)
})

test('a pattern of many stars takes no longer than it is long', () => {
  assert.equal(matchesGlob(`${'a*'.repeat(90)}b`, 'a'.repeat(5000)), false)
})

test('a pattern with stars means what a regular expression with `.*` does', () => {
  const text = (letters: string[]) =>
    fc.array(fc.constantFrom(...letters), { maxLength: 8 }).map((list) => list.join(''))
  const agrees = fc.property(text(['a', 'b', '*']), text(['a', 'b']), (pattern, given) => {
    const expected = new RegExp(`^${pattern.replaceAll('*', '.*')}$`).test(given)
    assert.equal(matchesGlob(pattern, given), expected)
  })
  fc.assert(agrees, { numRuns: 5000 })
})

test('what a delivery may make us compare is bounded: long texts with stars, and long lists', () => {
  assert.equal(matchesGlob('*a', 'a'.repeat(10_000)), true)
  assert.equal(matchesGlob('*a', 'a'.repeat(10_001)), false)
  const list = Array.from({ length: 1001 }, (_, i) => ({ n: i }))
  assert.equal(refusedBy({ 'list[].n': 999 }, { list }), undefined)
  assert.equal(refusedBy({ 'list[].n': 1000 }, { list }), 'list[].n')
})

test('long paths and long parts of patterns are paid for as they are long', () => {
  const path = Array(1000).fill('a').join('.')
  assert.throws(() => refusedFor({ [path]: 1 }, {}, createEffort(1000)), TooMuchToCompare)
  assert.equal(refusedFor({ [path]: 1 }, {}, createEffort(3000)), path)
  const part = `${'a'.repeat(300)}b${'a'.repeat(100)}`
  assert.throws(() => fitsGlob(`*${part}*`, 'a'.repeat(9990), createEffort(1_000_000)), TooMuchToCompare)
  assert.equal(fitsGlob(`*${part}*`, `xa${part}y`, createEffort(2000)), true)
})

test('filters of a workflow compare no more than is done for one delivery', () => {
  const texts = Array.from({ length: 100 }, () => 'a'.repeat(9000))
  const payload = { texts, names: { all: Array.from({ length: 1000 }, () => Array(90).fill(0)) } }
  const hostile: Filter[] = [
    { 'texts[]': { not: Array(100).fill('*aaab*') as string[] } },
    Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`names.all[][].n${n}`, { not: 'x' }])),
  ]
  const workflowId = newId('wf')
  const outcomeOf = (...filters: Filter[]) => {
    const entries = filters.map((filter) => ({ workflowId, slug: 's', events: ['*'], filter, environment: null }))
    const decision = done(decide(entries, { event: 'push', payload }, createEffort())).value
    return 'not' in decision ? decision.not.outcome : 'triggered'
  }
  for (const filter of hostile) assert.equal(outcomeOf(filter), 'too_large')
  const honest: Filter = { 'texts[]': { not: ['*aaab*', '*b'] }, 'names.all.3.1': 0 }
  assert.equal(outcomeOf(honest), 'triggered')
  assert.equal(outcomeOf({ 'names.all.3.1': 1 }, honest), 'triggered')
  assert.equal(outcomeOf({ 'names.all.3.1': 1 }), 'filtered')
})

test('what filters compare comes in pieces', () => {
  const piecesOf = (filter: Filter, payload: unknown) => done(refusedIn(filter, payload, createEffort())).pieces
  const names = Array.from({ length: 9 }, (_, n) => `a${n}`)
  const texts = Object.fromEntries(names.map((name) => [name, Array(990).fill('') as string[]]))
  const patterns = (count: number, pattern: string): Filter =>
    Object.fromEntries(names.map((name) => [`${name}[]`, { not: Array<string>(count).fill(pattern) }]))
  // Each piece costs 100,000, a look at one of the 8,910 texts 8, and a comparison with a pattern 2 more.
  assert.equal(piecesOf(patterns(1, 'q*'), texts), 2)
  assert.ok(piecesOf(patterns(80, 'q*'), texts) > 70)
  assert.ok(piecesOf(patterns(80, 'q'), texts) > 55)
  // Lists whose elements lack what is looked for are looked at as well.
  const empty = { a: Array.from({ length: 1000 }, () => Array(500).fill(null)) }
  assert.ok(piecesOf({ 'a[][].b': { not: 1 } }, empty) > 35)
})

test('a filter compares fields by their values', () => {
  const payload = {
    ref: 'refs/heads/main',
    size: 3,
    draft: false,
    gone: null,
    repository: { full_name: 'acme/app' },
    labels: [{ name: 'bug' }, { name: 'later' }],
  }
  const fits = (filter: Filter) => refusedBy(filter, payload) === undefined
  assert.ok(fits({}))
  assert.ok(fits({ ref: 'refs/heads/*', size: 3, draft: false, gone: null }))
  assert.ok(fits({ 'repository.full_name': ['other', 'acme/*'] }))
  assert.ok(fits({ 'labels[].name': 'bug', 'labels.1.name': 'later', 'labels.[].name': ['x', 'later'] }))
  assert.ok(fits({ ref: { not: 'refs/tags/*' }, 'labels[].name': { not: ['wontfix'] }, missing: { not: 'x' } }))
  assert.ok(!fits({ size: '3' }))
  assert.ok(!fits({ missing: null }))
  assert.ok(!fits({ 'labels[].name': { not: 'bug' } }))
  assert.ok(!fits({ 'labels.7.name': 'bug' }))
  assert.ok(!fits({ 'repository.__proto__': 'x' }))
  assert.equal(refusedBy({ draft: false, size: 4 }, payload), 'size')
})

test('a body becomes JSON, text, a form or base64 by its type', () => {
  const read = (body: string | Buffer, type?: string, form: 'github' | 'any' = 'any') =>
    readPayload(Buffer.from(body), type, form)
  assert.deepEqual(read('{"n": 1.0}', 'application/json'), { value: { n: 1 }, text: '{"n": 1.0}' })
  assert.deepEqual(read('[1]', 'application/cloudevents+json; charset=utf-8'), { value: [1], text: '[1]' })
  assert.deepEqual(read('', 'application/json'), { value: null, text: 'null' })
  assert.deepEqual(read('{', 'application/json'), { invalid: 'The body is not valid JSON.' })
  assert.deepEqual((read('<a/>', 'application/xml') as { value: unknown }).value, { text: '<a/>' })
  assert.deepEqual((read('hello') as { value: unknown }).value, { text: 'hello' })
  assert.deepEqual((read(Buffer.from([0xff]), 'image/png') as { value: unknown }).value, {
    base64: '/w==',
    contentType: 'image/png',
  })
  const form = 'application/x-www-form-urlencoded'
  assert.equal((read('a=1&b=2&a=3', form) as { text: string }).text, '{"a":["1","3"],"b":"2"}')
  assert.deepEqual(read(`payload=${encodeURIComponent('{"x":1}')}`, form, 'github'), {
    value: { x: 1 },
    text: '{"x":1}',
  })
  assert.match(JSON.stringify(read('['.repeat(600) + ']'.repeat(600), 'application/json')), /nests deeper/)
})

test('of lists in lists no more is looked at than counts', () => {
  const payload = { commits: Array.from({ length: 50 }, () => ({ modified: Array.from({ length: 1000 }, () => 'a') })) }
  // A look at each of the 50,000 would be 400,000.
  assert.equal(refusedFor({ 'commits[].modified[]': 'b' }, payload, createEffort(50_000)), 'commits[].modified[]')
})

test('fields of one name take no longer than they are many', () => {
  const fields = fieldsOf(Buffer.from('a=1&'.repeat(300_000)))
  assert.equal(fields?.['a']?.length, 300_000)
})

test('forms are read as the URL standard has it, in one go, and no further than they may be', (t) => {
  const form = 'a=1&a=%C3%A9+b&c&&=%zz%&__proto__=x&%26=%3D&d=%C3&é=%ED%A0%80%0&a='
  const fields = fieldsOf(Buffer.from(form))
  assert.deepEqual(Object.entries(fields!), [
    ['a', ['1', 'é b', '']],
    ['c', ''],
    ['', '%zz%'],
    ['__proto__', 'x'],
    ['&', '='],
    ['d', '\ufffd'],
    ['é', '\ufffd\ufffd\ufffd%0'],
  ])
  // What throws for each byte that is no UTF-8 takes seconds for a megabyte.
  const throwing = t.mock.method(globalThis, 'decodeURIComponent')
  assert.equal(fieldsOf(Buffer.from('%C3&'.repeat(10_000)), 10_000)?.['\ufffd']?.length, 10_000)
  assert.equal(fieldsOf(Buffer.from('%C3&'.repeat(10_001)), 10_000), null)
  assert.equal(throwing.mock.callCount(), 0)
})

test('events and ids are what the provider calls them', () => {
  const github = { 'x-github-event': 'pull_request', 'x-github-delivery': 'd-1' }
  assert.equal(eventOf({ kind: 'github' }, github, { action: 'opened' }), 'pull_request.opened')
  assert.equal(eventOf({ kind: 'github' }, github, {}), 'pull_request')
  assert.equal(idOf({ kind: 'github' }, github, {}), 'd-1')
  assert.equal(eventOf({ kind: 'stripe' }, {}, { type: 'invoice.paid' }), 'invoice.paid')
  assert.equal(idOf({ kind: 'stripe' }, {}, { id: 'evt_1' }), 'evt_1')
  assert.equal(
    eventOf({ kind: 'slack' }, {}, { type: 'event_callback', event: { type: 'app_mention' } }),
    'app_mention',
  )
  assert.equal(eventOf({ kind: 'slack' }, {}, { type: 'block_actions' }), 'block_actions')
  assert.equal(eventOf({ kind: 'slack' }, {}, { command: '/deploy' }), 'command:/deploy')
  assert.equal(idOf({ kind: 'standard-webhooks' }, { 'webhook-id': 'msg_1' }, {}), 'msg_1')
  const own = { kind: 'hmac', event: { field: 'data.kind' }, dedupe: { header: 'X-Id' } } as const
  assert.equal(eventOf(own, {}, { data: { kind: 'made' } }), 'made')
  assert.equal(idOf(own, { 'x-id': '7' }, {}), '7')
  assert.equal(eventOf({ kind: 'bearer' }, {}, { type: 'x' }), null)
})

test('a header that nobody sent is none, whatever every object has', () => {
  for (const header of ['constructor', 'valueOf', '__proto__']) {
    assert.equal(eventOf({ kind: 'hmac', event: { header } }, {}, {}), null, header)
    assert.equal(idOf({ kind: 'hmac', dedupe: { header } }, {}, {}), null, header)
    assert.equal(idOf({ kind: 'hmac', idHeader: header }, {}, {}), null, header)
  }
  assert.equal(eventOf({ kind: 'hmac', event: { header: 'Constructor' } }, { constructor: 'own' }, {}), 'own')
})

test('credentials are stored as [redacted]', () => {
  const given = { authorization: 'Bearer x', cookie: 'a=b', 'x-gitlab-token': 'x', 'x-shown': 'x', accept: '*/*' }
  assert.deepEqual(withoutCredentials(given, { secretHeader: 'X-Shown', judgedBy: [], secrets: [] }), {
    authorization: '[redacted]',
    cookie: '[redacted]',
    'x-gitlab-token': '[redacted]',
    'x-shown': '[redacted]',
    accept: '*/*',
  })
})

test('so are headers that are called so, but for those by which the source judges', () => {
  const secret = ['x-telegram-bot-api-secret-token', 'x-api-key', 'apikey', 'x-original-authorization', 'private-token']
  const read = ['idempotency-key', 'x-hub-signature-256', 'x-token-count', 'webhook-id', 'x-order-token']
  const given = Object.fromEntries([...secret, ...read].map((name) => [name, 'x']))
  const shown = withoutCredentials(given, { judgedBy: ['X-Order-Token'], secrets: [] })
  assert.deepEqual(
    Object.keys(given).filter((name) => shown[name] === '[redacted]'),
    secret,
  )
})

test('so is a secret that serves, wherever a sender has put it', () => {
  const secrets = ['hunter2-hunter2/A==', 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw']
  const holding = [
    secrets[0]!,
    `Bearer ${secrets[0]}`,
    `a=1; key=${secrets[0]}, b`,
    secrets[1]!.slice(6),
    `k:${secrets[1]}`,
  ]
  for (const value of holding)
    assert.deepEqual(withoutCredentials({ a: value }, { judgedBy: ['a'], secrets }), { a: '[redacted]' }, value)
  for (const value of ['hunter2-hunter2', 'x'.repeat(16_000), ''])
    assert.notEqual(withoutCredentials({ a: value }, { judgedBy: [], secrets })['a'], '[redacted]')
})

test('Slack is answered its challenge, nobody else', () => {
  assert.deepEqual(handshakeOf('slack', { type: 'url_verification', challenge: 'c' }), { challenge: 'c' })
  assert.deepEqual(handshakeOf('slack', { ssl_check: '1' }), {})
  assert.equal(handshakeOf('slack', { type: 'event_callback' }), undefined)
  assert.equal(handshakeOf('github', { type: 'url_verification', challenge: 'c' }), undefined)
})
