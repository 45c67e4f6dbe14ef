// What a program does not hear of while its agent is being stopped, or does because of it, ends nothing.
import test from 'node:test'
import { aHost, aRecord, opened, ops } from './host-process.ts'
import { HANDOVER, keep, leaves, UNTIL_ABORT, wake } from './stop-of-the-agent.ts'

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
  const won = await Promise.race([charged, sleep('2h')])
  await step('release', () => 1)
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
  await keep(host, 'release')
  await leaves(host)
})
