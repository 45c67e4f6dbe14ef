import assert from 'node:assert/strict'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aProgram } from '../_kit/bundle.ts'
import { kindsOf } from '../_kit/durable.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { withAgent } from '../_kit/with-agent.ts'

withAgent('a program hears how many of its journal entries are committed', async ({ fake }) => {
  const placement = fake.offer(
    await aHandMade(`close(1); const one = await kept(1); say('between'); close(2); close(3)
      const three = await kept(3); done([one.count, three.count])`),
  )
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '[1,3]' })
  assert.deepEqual(kindsOf(placement), ['start', 'j', 'log.stdout', 'j', 'j', 'end'])
  const [first] = placement.entries.filter((entry) => entry[0] === 'j')
  assert.equal(JSON.parse(first![2]).entry.n, 1)
})

withAgent('what is committed across a cut connection is told afterwards', async ({ fake }) => {
  fake.mute.add('ack')
  const placement = fake.offer(await aHandMade(`say('x'); close(1); close(2); await kept(2); done('kept')`))
  await until('both arrived', () => kindsOf(placement).filter((kind) => kind === 'j').length === 2)
  fake.cut()
  await until('a new connection', () => fake.heard('hello').length > 1)
  fake.mute.delete('ack')
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"kept"' })
})

withAgent('what has to be sent again counts once', async ({ fake }) => {
  // Heard and lost: the coordinator asks for it again.
  fake.mute.add('entries')
  const placement = fake.offer(await aHandMade(`close(1); close(2); const { count } = await kept(2); done(count)`))
  await until('they were sent', () => fake.heard('entries').length > 0)
  fake.mute.delete('entries')
  fake.send({ t: 'resume', runs: [{ run: placement.offer.run, epoch: 1, seq: 0 }] })
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '2' })
})

const LINE = /PROGRAM_LINE_BROKEN/
for (const [what, text] of [
  ['no JSON', `'{'`],
  ['no object', `'[1]'`],
  ['larger than it may be', `JSON.stringify({ op: 'x'.repeat(4 * 1024 * 1024) })`],
] as const) {
  withAgent(`a journal entry that is ${what} fails the run, and alone`, async ({ fake }) => {
    // The line may break while it writes.
    const broken = `try { frame('journal', ${text}) } catch {} setInterval(() => {}, 1000)`
    const placement = fake.offer(await aHandMade(broken))
    const other = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'threw')
    assert.match(ending.error.code ?? '', LINE)
    assert.equal((await fake.ending(other)).how, 'returned')
    assert.deepEqual(linesOf(placement), [])
  })
}
