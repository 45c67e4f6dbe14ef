// What a program does not hear of while its agent is being stopped, or does because of it, ends nothing.
import assert from 'node:assert/strict'
import test, { type TestContext } from 'node:test'
import { aHost, aRecord, opened, ops, type Host } from './host-process.ts'
import { closed, HANDOVER, keep, leaves, UNTIL_ABORT, wake } from './stop-of-the-agent.ts'

/** Its last process had something before that, and does not do it. */
const UNLESS_BEFORE = `const works = process.env.BEFORE ? () => 0 : ${UNTIL_ABORT}`

for (const [what, body] of [
  ['does something else', `try { await works() } catch { await step('refund', () => 1) }\nawait sleep('1h')`],
  [
    'throws beside a step that only waits',
    `await Promise.all([step('one', () => sleep('1h')), (async () => { await works(); await sleep('2h') })()])`,
  ],
] as const)
  test(`a replay of a program that ${what} for the signal is not blocked`, async (t) => {
    const first = await aHost(t, `${UNLESS_BEFORE}\n${body}`)
    first.start({ variables: { BEFORE: 'yes' } })
    await first.next('park')
    const opens = ops(first).flatMap((op) => (op.op === 'open' ? [aRecord(op.entry)] : []))
    const host = await aHost(t, `${UNLESS_BEFORE}\n${body}`)
    host.start({ journal: opens, replay: true, entries: opens.length })
    await host.next('log')
    host.send(HANDOVER)
    await leaves(host)
  })

const FAILS_AMID_WAIT = `
  const busy = setInterval(() => {}, 1000)
  const charged = step('charge', async () => {
    await sleep('1h')
    log('is refused')
    throw new Error('refused')
  })
  await Promise.race([charged, sleep('2h')])
  clearInterval(busy)
  return 'timed out'`

test('a run has not ended that returns without a failure: the next attempt executes that step again', async (t) => {
  const host = await aHost(t, FAILS_AMID_WAIT)
  host.start()
  const [, inside, outside] = [await opened(host), await opened(host), await opened(host)]
  host.send(HANDOVER)
  host.send(wake(inside.entry.n))
  await host.next('log')
  host.send(wake(outside.entry.n))
  await leaves(host)
})

/** Another attempt is paid. This one is refused, and lets a race be over after that. */
const CHARGE = `
  const { promise: late, resolve: over } = Promise.withResolvers()
  const charge = () => step('charge', async () => {
    await sleep('1h')
    if (context.attempt > 1) return 'paid'
    setTimeout(over, 20, 'timed out')
    throw new Error('refused')
  })`

/** Stopped amid the sleep inside of that step. */
async function refused(t: TestContext, body: string) {
  const host = await aHost(t, `${CHARGE}\n${body}`)
  host.start()
  for (;;) {
    const { ask, entry } = await opened(host)
    if (ask.for !== 'sleep') continue
    host.send(HANDOVER)
    host.send(wake(entry.n))
    return host
  }
}

/** By what the one before has told. */
async function nextAttempt(t: TestContext, body: string, before: Host): Promise<Host> {
  const slept = { state: 'done', result: 'null', completed: 1 } as const
  const journal = ops(before).flatMap((op) =>
    op.op === 'open' ? [aRecord(op.entry, op.ask.for === 'sleep' ? slept : {})] : [],
  )
  const host = await aHost(t, `${CHARGE}\n${body}`)
  host.start({ journal, attempt: 2, entries: journal.length })
  return host
}

const goesOn = (race: string) => `
  const won = await Promise.race([${race}, late])
  if (won !== 'paid') await step('release', () => log('releases'))
  return won`

for (const [what, body, steps] of [
  ['a program', goesOn('charge()'), ['charge']],
  ['a step', `return await step('order', async () => {${goesOn('charge()')}})`, ['charge', 'order']],
  ['a step that returns', `return await step('order', () => Promise.race([charge(), late]))`, ['charge', 'order']],
  [
    'a step around another',
    `return await step('order', () => Promise.race([step('bill', charge), late]))`,
    ['charge', 'bill', 'order'],
  ],
] as const)
  test(`${what} that was not told of a failure comes to nothing: the next attempt does it anew`, async (t) => {
    const host = await refused(t, body)
    await leaves(host)
    assert.deepEqual(closed(host), [])
    assert.ok(!host.seen.some(({ name }) => name === 'log'))
    const next = await nextAttempt(t, body, host)
    for (const name of steps) await keep(next, name)
    assert.equal(await next.next('returned'), '"paid"')
  })

test('a step beside one that has failed comes to its end, and so does what it calls', async (t) => {
  const pack = `step('pack', async () => { await late; await step('wrap', () => 1) })`
  const host = await refused(t, `await Promise.all([${pack}, charge()])`)
  await keep(host, 'wrap')
  await keep(host, 'pack')
  await leaves(host)
  assert.deepEqual(closed(host), ['step wrap done', 'step pack done'])
})

test('where it is cancelled after that, it is given what was withheld, and goes on', async (t) => {
  const host = await refused(
    t,
    `const busy = setInterval(() => {}, 1000)
     void late.then(() => step('beside', () => log('beside')))
     const won = await step('order', async () => {
       const first = await Promise.race([charge(), late])
       log(first)
       return first
     })
     clearInterval(busy)
     return won`,
  )
  const next = async () => JSON.parse(await host.next('log')).text as string
  assert.equal(await next(), 'timed out')
  host.send({ t: 'cancel', why: 'cancelled', reason: '', graceMs: 600_000 })
  assert.equal(await next(), 'beside')
  assert.equal(await host.next('returned'), '"timed out"')
  assert.deepEqual(closed(host), [])
})
