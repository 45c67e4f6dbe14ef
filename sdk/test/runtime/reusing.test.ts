import assert from 'node:assert/strict'
import test from 'node:test'
import { aHost, opened } from './host-process.ts'

test('a process that serves another run says nothing of the one before', async (t) => {
  // A race whose loser is there as well, a step that is being kept, and a short sleep: all of them are left behind.
  const host = await aHost(
    t,
    `if (input.second) {
       // Longer than anything is gathered.
       await new Promise((resolve) => setTimeout(resolve, 1500))
       return 'second'
     }
     void step('left', () => 'behind')
     void sleep(20)
     return await Promise.race([workflows.call('a'), workflows.call('b')])`,
  )
  host.start({ stays: true })
  const numbers = [(await opened(host)).entry.n, (await opened(host)).entry.n]
  host.send({ t: 'wake', completions: numbers.map((n) => ({ n, state: 'done', result: String(n) })) })
  assert.equal(await host.next('returned'), String(numbers[0]))
  await host.next('idle')

  const before = host.seen.length
  host.start({ stays: true, runId: 'run_other', inputText: '{"second":true}' })
  assert.equal(await host.next('returned'), '"second"')
  await host.next('idle')
  assert.deepEqual(
    host.seen.slice(before).map(({ name }) => name),
    ['begun', 'returned', 'idle'],
  )
})
