import assert from 'node:assert/strict'
import test from 'node:test'
import type { EntryIdentity } from '@windlass/shared/wire/journal.ts'
import { aHost, aRecord, opened, ops } from './host-process.ts'

test('a replay leads to where the last process stood, and is told to be over when something new comes', async (t) => {
  const body = `
    const a = await step('draw', () => { log('drawing'); return 7 })
    await sleep('1h')
    log('after the first')
    const b = await requestInput({ prompt: 'b?' })
    return [a, b]`
  const first = await aHost(t, body)
  first.start()
  const drawn = await first.nextOp()
  assert.ok(drawn.op === 'close')
  first.send({ t: 'kept', count: 1 })
  const slept = await opened(first)
  await first.next('park')
  first.send({ t: 'wake', completions: [{ n: 2, state: 'done', result: 'null' }] })
  const asked = await opened(first)
  await first.next('park')
  const list = ops(first).flatMap((op) => (op.op === 'deliver' ? op.list : []))
  assert.deepEqual(
    list.map(([order, n, after]) => [order, n, after]),
    [
      [1, 1, 1],
      [2, 2, 2],
    ],
  )

  const journal = [
    aRecord(drawn.entry, { state: 'done', result: drawn.result, delivered: 1, after: 1, idle: false }),
    aRecord(slept.entry, { state: 'done', result: 'null', delivered: 2, after: 2, idle: true }),
    aRecord(asked.entry),
  ]
  const second = await aHost(t, body)
  second.start({ journal, replay: true })
  assert.deepEqual(await second.parked(), { waitsFor: 'input', heard: 0 })
  assert.deepEqual(
    second.seen.map(({ name }) => name),
    ['begun', 'log', 'park'],
  )
  second.send({ t: 'wake', completions: [{ n: 3, state: 'done', result: '"yes"' }] })
  await second.next('live')
  assert.equal(await second.next('returned'), '[7,"yes"]')

  const third = await aHost(t, body)
  const answered = journal.map((record) =>
    record.n === 3 ? { ...record, state: 'done' as const, result: '"no"', completed: 4 } : record,
  )
  third.start({ journal: answered, replay: true })
  await third.next('live')
  assert.equal(await third.next('returned'), '[7,"no"]')
  assert.equal(
    third.seen.some(({ name }) => name === 'park'),
    false,
  )
})

/** As an agent passes it on that knows the secret. */
function hiddenIn(entry: EntryIdentity): EntryIdentity {
  return { ...entry, name: entry.name.replace(/s3cret-\w+/, '***'), args: entry.args.replace(/s3cret-\w+/, '***') }
}

test('a question in whose prompt a secret was hidden is known again, with another secret too', async (t) => {
  const body = `return requestInput({ prompt: 'Is ' + process.env.KEY + ' right?' })`
  const first = await aHost(t, body)
  first.start({ variables: { KEY: 's3cret-one' } })
  const { entry } = await opened(first)
  const asked = aRecord(hiddenIn(entry), { state: 'done', result: '"yes"', completed: 1 })
  assert.equal(asked.name, 'Is *** right?')

  const second = await aHost(t, body)
  second.start({ journal: [asked], replay: true, variables: { KEY: 's3cret-one' } })
  assert.equal(await second.next('returned'), '"yes"')
  assert.ok(!ops(second).some(({ op }) => op === 'drift' || op === 'open'))

  const rotated = await aHost(t, body)
  rotated.start({ journal: [asked], replay: true, variables: { KEY: 's3cret-two' } })
  assert.equal(await rotated.next('returned'), '"yes"')
  assert.deepEqual(
    ops(rotated)
      .map(({ op }) => op)
      .slice(0, 1),
    ['drift'],
  )

  const crashed = await aHost(t, body)
  crashed.start({ journal: [asked], attempt: 2, variables: { KEY: 's3cret-one' } })
  assert.equal(await crashed.next('returned'), '"yes"')
  assert.ok(ops(crashed).some(({ op }) => op === 'adopt'))

  const other = await aHost(t, `return requestInput({ prompt: 'Was ' + process.env.KEY + ' right?' })`)
  other.start({ journal: [asked], replay: true, variables: { KEY: 's3cret-one' } })
  assert.match(await other.next('blocked'), /Was s3cret-one right/)
})

test('a question that goes on behind what was recorded is another one, whatever was hidden', async (t) => {
  const first = await aHost(t, `return requestInput({ prompt: 'Delete ' + process.env.KEY + ' at once?' })`)
  first.start({ variables: { KEY: 's3cret-one' } })
  const { entry } = await opened(first)
  const asked = aRecord(hiddenIn(entry), { state: 'done', result: '"yes"', completed: 1 })

  const other = await aHost(t, `return requestInput({ prompt: 'Delete ' + process.env.KEY + ' at once? And all?' })`)
  other.start({ journal: [asked], replay: true, variables: { KEY: 's3cret-one' } })
  assert.match(await other.next('blocked'), /And all/)
})

test('a program whose replay ends at a call that is new goes on, although no result waits for it', async (t) => {
  const body = `await sleep('1h')\nreturn requestInput({ prompt: 'Sure?' })`
  const first = await aHost(t, body)
  first.start()
  const { entry } = await opened(first)
  const second = await aHost(t, body)
  const slept = aRecord(entry, { state: 'done', result: 'null', delivered: 1, after: 1, idle: true })
  second.start({ journal: [slept], replay: true })
  await second.next('live')
  assert.equal((await opened(second)).entry.n, 2)
  assert.deepEqual(await second.parked(), { waitsFor: 'input', heard: 0 })
  second.send({ t: 'wake', completions: [{ n: 2, state: 'done', result: '"yes"' }] })
  assert.equal(await second.next('returned'), '"yes"')
})

test('a program that goes another way in its replay is blocked and stays until it is ended', async (t) => {
  const host = await aHost(t, `await workflows.call('other', 1)\nreturn 'done'`)
  const entry = {
    n: 1,
    position: 1,
    parent: '',
    kind: 'sleep',
    name: '',
    hash: 'x',
    occurrence: 1,
    args: '3600000',
    site: 'index.ts:9:3',
  } as const
  host.start({ replay: true, journal: [aRecord(entry)] })
  assert.deepEqual(JSON.parse(await host.next('blocked')), {
    expected: 'sleep(3600000) at index.ts:9:3',
    received: 'workflows.call("other", {"input":1})',
    at: 'index.ts:3:17',
  })
})

test('a program that crashed takes over what is still on its way', async (t) => {
  const body = `return requestInput({ prompt: 'Sure?' })`
  const first = await aHost(t, body)
  first.start()
  const { entry } = await opened(first)
  const second = await aHost(t, body)
  second.start({ attempt: 2, journal: [aRecord(entry)] })
  assert.deepEqual(await second.nextOp(), { op: 'adopt', n: 1, position: 1 })
  await second.next('park')
  second.send({ t: 'wake', completions: [{ n: 1, state: 'done', result: '"yes"' }] })
  assert.equal(await second.next('returned'), '"yes"')
})
