// Downloads need no credential, so each takes a seat, whatever it is of.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

test('a download takes a seat by the address of its reader, and without one it is told to come again', async (t) => {
  const { files } = await c.deps.packages.current()
  const url = `${c.url}/downloads/${files.windlass}`
  let left = 0
  const { mock } = t.mock.method(c.deps.downloadSeats, 'take', () => ({ took: () => {}, leave: () => void left++ }))
  const whole = await fetch(url)
  assert.equal(whole.status, 200)
  await whole.arrayBuffer()
  assert.deepEqual(
    mock.calls.map(({ arguments: [address] }) => address),
    ['127.0.0.1'],
  )
  await untilPolled('the seat to be free', () => Promise.resolve(left === 1))
  mock.mockImplementation(() => {
    throw new Fault('UNAVAILABLE')
  })
  const refused = await fetch(url)
  assert.deepEqual([refused.status, refused.headers.get('retry-after')], [503, '1'])
})
