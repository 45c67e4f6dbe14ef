// A program that computes and never waits says nothing to the agent that takes it back, and hears nothing.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { abandoned } from './abandoned.ts'

/** Longer than all tests have. */
const BUSY = `
  console.log(String(process.pid))
  for (const end = Date.now() + 600_000; Date.now() < end;);`

after(endAgentProcesses)

test('its time is over all the same', async (t) => {
  const { fake, placement, takeOver } = await abandoned(t, BUSY, { timeoutMs: 3_000, graceMs: 100 })
  await takeOver()
  assert.deepEqual(await fake.ending(placement), { how: 'timed-out', timeoutMs: 3_000 })
})

for (const why of ['cancelled', 'timed-out'] as const)
  test(`it is ended when it is ${why} and its grace is over`, async (t) => {
    const { fake, placement, takeOver, connected } = await abandoned(t, BUSY, { graceMs: 60_000 })
    await takeOver()
    await connected()
    const { run, epoch } = placement.offer
    fake.send({ t: 'cancel', runs: [{ run, epoch, why, reason: 'typo', graceMs: 100 }] })
    const { how } = await fake.ending(placement)
    assert.equal(how, why)
  })
