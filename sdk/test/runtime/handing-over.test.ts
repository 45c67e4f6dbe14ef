import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { aHost, ops } from './host-process.ts'
import { closed, HANDOVER, keep, leaves, UNTIL_ABORT, wake } from './stop-of-the-agent.ts'

// A program that has not looked at its signal does not notice the stop: what it waits for is sent behind it, so that it
// goes on with the stop in force.

const WAITS_INSIDE = `const one = await step('one', async () => { await sleep('1h'); return 1 })`

test('steps that succeed after it are kept, further ones are executed, and what run returns counts', async (t) => {
  const host = await aHost(t, `${WAITS_INSIDE}\nconst two = await step('two', () => 2)\nreturn [one, two]`)
  host.start()
  await host.next('park')
  host.send(HANDOVER)
  host.send(wake(2))
  await keep(host, 'one')
  await keep(host, 'two')
  assert.equal(await host.next('returned'), '[1,2]')
})

test('a wait stays one, and the program parks', async (t) => {
  const host = await aHost(t, `${WAITS_INSIDE}\nawait sleep('2h')\nreturn one`)
  host.start()
  await host.next('park')
  host.send(HANDOVER)
  host.send(wake(2))
  await keep(host, 'one')
  assert.deepEqual(await host.parked(), { waitsFor: 'sleep', heard: 1 })
  host.send(wake(3))
  assert.equal(await host.next('returned'), '1')
})

test('of a step that fails after it neither the journal nor the program hears', async (t) => {
  const host = await aHost(
    t,
    `const fails = step('fails', async () => { await sleep('1h'); throw new Error('no') })
     return fails.catch(() => step('undo', () => 1))`,
  )
  host.start()
  await host.next('park')
  host.send(HANDOVER)
  host.send(wake(2))
  await leaves(host)
  assert.deepEqual(closed(host), [])
})

test('a program that waits for such a step does not park, as nobody would execute that meanwhile', async (t) => {
  const host = await aHost(
    t,
    `const fails = step('fails', async () => { await sleep('1h'); throw new Error('no') })
     await Promise.all([fails, sleep('2h')])`,
  )
  host.start()
  await host.next('park')
  host.send(HANDOVER)
  host.send(wake(2))
  await leaves(host)
})

test('a step that ends early for the signal undoes nothing', async (t) => {
  const host = await aHost(
    t,
    `await step('pay', () => 1)
     try { await step('pack', ${UNTIL_ABORT}) } catch { await step('refund', () => 1) }`,
  )
  host.start()
  await keep(host, 'pay')
  await host.next('log')
  host.send(HANDOVER)
  await leaves(host)
  assert.deepEqual(closed(host), ['step pay done'])
})

test('what follows from the signal is not begun, and a program sees in it why', async (t) => {
  const host = await aHost(
    t,
    `await step('pay', () => 1)
     try { await (${UNTIL_ABORT})() } catch (error) {
       log([error.name, error instanceof AgentStoppedError, error instanceof CancelledError].join())
       await step('refund', () => log('refunds'))
     }`,
  )
  host.start()
  await keep(host, 'pay')
  await host.next('log')
  host.send(HANDOVER)
  assert.equal(JSON.parse(await host.next('log')).text, 'AgentStoppedError,true,false')
  await leaves(host)
  assert.deepEqual(closed(host), ['step pay done'])
})

for (const [what, ends] of [
  ['returns early', 'return 2'],
  ['throws', 'throw error'],
])
  test(`a program that ${what} for the signal has not ended the run`, async (t) => {
    const host = await aHost(
      t,
      `await step('pay', () => 1)
       try { await (${UNTIL_ABORT})() } catch (error) { ${ends} }`,
    )
    host.start()
    await keep(host, 'pay')
    await host.next('log')
    host.send(HANDOVER)
    await leaves(host)
  })

test('one that throws for another reason has not ended it either', async (t) => {
  const host = await aHost(t, `await sleep('1h')\nthrow new Error('no')`)
  host.start()
  await host.next('park')
  host.send(HANDOVER)
  host.send(wake(1))
  await leaves(host)
  // The next attempt gets past that wait, also where somebody cancels the run meanwhile.
  assert.deepEqual(ops(host).at(-1), { op: 'deliver', list: [[1, 1, 1, 1]] })
})

test('a wait that was over is told of where nothing more can come, too', async (t) => {
  const host = await aHost(t, `await sleep('1h')\nawait step('fails', () => { throw new Error('no') })`)
  host.start()
  await host.next('park')
  host.send(HANDOVER)
  host.send(wake(1))
  await leaves(host)
  assert.deepEqual(ops(host).at(-1), { op: 'deliver', list: [[1, 1, 1, 1]] })
})

test('who cancels it after that is heard: what was withheld goes on, and the signal has that reason', async (t) => {
  const host = await aHost(
    t,
    `await step('pay', () => 1)
     const pack = step('pack', ${UNTIL_ABORT}).catch((error) => log('packing: ' + error.name))
     context.signal.addEventListener('abort', () => {
       void step('late', () => log('late'))
       setTimeout(() => log('aborted'))
     })
     const busy = setInterval(() => {}, 1000)
     await pack
     clearInterval(busy)
     return step('refund', () => context.signal.reason.name)`,
  )
  host.start()
  await keep(host, 'pay')
  const next = async () => JSON.parse(await host.next('log')).text as string
  assert.equal(await next(), 'waits')
  host.send(HANDOVER)
  assert.equal(await next(), 'aborted')
  host.send({ t: 'cancel', why: 'cancelled', reason: '', graceMs: 600_000 })
  assert.deepEqual([await next(), await next()].sort(), ['late', 'packing: AgentStoppedError'])
  assert.equal(await host.next('returned'), '"CancelledError"')
  assert.deepEqual(closed(host), ['step pay done'])
})

test('one that comes before the first call counts for it', async (t) => {
  const host = await aHost(
    t,
    `const { signal } = context
     const busy = setInterval(() => {}, 1000)
     await new Promise((resolve) => signal.addEventListener('abort', resolve))
     clearInterval(busy)
     await step('late', () => 1)`,
  )
  host.start()
  await host.next('begun')
  host.send(HANDOVER)
  await leaves(host)
  assert.deepEqual(closed(host), [])
})

test('one whose agent is gone as well comes to an end, as nobody could give it what was withheld', async (t) => {
  const host = await aHost(t, `${WAITS_INSIDE}\nreturn one`)
  const folder = await mkdtemp(path.join(tmpdir(), 'windlass-handover-'))
  t.after(() => rm(folder, { recursive: true, force: true }))
  host.start({ rejoin: { folder, waitMs: 600_000 } })
  await host.next('park')
  host.send(HANDOVER)
  host.leave()
  await host.exited
})

test('one that ends what it did beside its wait does not park: a replay would begin that again', async (t) => {
  const host = await aHost(
    t,
    `const beat = setInterval(() => {}, 1000)
     context.signal.addEventListener('abort', () => clearInterval(beat))
     log('beats')
     await sleep('1h')`,
  )
  host.start()
  await host.next('log')
  host.send(HANDOVER)
  await leaves(host)
  assert.equal(
    host.seen.some(({ name }) => name === 'park'),
    false,
  )
})

for (const [how, end] of [
  ['throws', 'await Promise.all([charged, stopped])'],
  ['returns', 'return await Promise.race([charged, stopped.catch(() => 0)])'],
])
  test(`a step that is under way comes to its end, where the program ${how} for the stop`, async (t) => {
    const host = await aHost(
      t,
      `const { signal } = context
       const stopped = new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
       const charged = step('charge', async () => {
         log('charges')
         const busy = setInterval(() => {}, 1000)
         await stopped.catch(() => {})
         await new Promise((resolve) => setTimeout(resolve, 100))
         clearInterval(busy)
         return 1
       })
       ${end}`,
    )
    host.start()
    await host.next('log')
    host.send(HANDOVER)
    await keep(host, 'charge')
    await leaves(host)
    assert.deepEqual(closed(host), ['step charge done'])
  })

test('a step that only waits is left at once by a program that has ended', async (t) => {
  const host = await aHost(
    t,
    `${UNTIL_ABORT.replace('() =>', 'const stopped =')}
    await Promise.all([step('one', () => sleep('1h')), stopped])`,
  )
  host.start()
  await host.next('log')
  host.send(HANDOVER)
  await leaves(host)
})

test('one that has returned before it has ended, though its last call is committed later', async (t) => {
  const host = await aHost(t, `context.signal\nvoid workflows.call('mail', {})\nlog('returns')\nreturn 7`)
  host.start()
  await host.next('log')
  await host.nextOp()
  host.send(HANDOVER)
  host.send({ t: 'kept', count: 1 })
  assert.equal(await host.next('returned'), '7')
})

test('one that throws beside a step that only waits leaves, and does not park', async (t) => {
  const host = await aHost(
    t,
    `await Promise.all([step('one', () => sleep('2h')), sleep('1h').then(() => { throw new Error('away') })])`,
  )
  host.start()
  await host.parked()
  const slept = ops(host).find((op) => op.op === 'open' && op.ask.for === 'sleep' && op.entry.parent === '')
  assert.ok(slept?.op === 'open')
  host.send(HANDOVER)
  host.send(wake(slept.entry.n))
  await leaves(host)
  assert.equal(host.seen.filter(({ name }) => name === 'park').length, 1)
})
