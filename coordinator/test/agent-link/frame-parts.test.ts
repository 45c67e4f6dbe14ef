import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { LEAST_PART_CHARS } from '@windlass/shared/wire/parts.ts'
import { createFrameQueues } from '../../agent-link/frame-queue.ts'
import { createPace } from '../../pace.ts'
import { aConnection } from '../_kit/frame-connection.ts'

test('a frame that comes in parts is read when its last one is there; others come between', () => {
  const queues = createFrameQueues(createPace())
  const read: string[] = []
  const { add, closed } = aConnection(queues, { id: 'a', orgId: 'one' }, read)
  read.length = 0
  const filling = '.'.repeat(32 * 1024)
  for (const message of [`+e{"t":"ent${filling}`, 'beat', `+o{"t":"renew",${filling}`, '.eries"}', '.o"runs":[]}'])
    add(message)
  assert.deepEqual(closed, [])
  assert.deepEqual(read, ['beat'])
})

test('parts that are short, or come before hello as entries, are refused', () => {
  const queues = createFrameQueues(createPace())
  const { add, closed } = aConnection(queues, { id: 'a', orgId: 'one' }, [])
  // An agent behind a slow line sends short ones.
  add(`+e${'x'.repeat(LEAST_PART_CHARS)}`)
  assert.deepEqual(closed, [])
  add(`+e${'x'.repeat(LEAST_PART_CHARS - 1)}`)
  assert.deepEqual(closed, ['1008 a part is too short'])
  const early: string[] = []
  const queue = queues.open(
    { id: 'b', orgId: 'one' },
    { read: () => assert.fail(), failed: assert.fail, close: (_, reason) => early.push(reason) },
  )
  queue.add(`+e${'x'.repeat(64 * 1024)}`)
  assert.deepEqual(early, ['hello comes first'])
})

test('parts whose last one never comes are bounded as what waits, and leave with their connection', () => {
  const queues = createFrameQueues({ next: () => new Promise(() => {}) })
  const piece = 'x'.repeat(64 * 1024)
  const endless = aConnection(queues, { id: 'endless', orgId: 'one' }, [])
  for (let n = 0; n < 300; n++) endless.add(`+e${piece}`)
  assert.deepEqual(endless.closed, ['1008 a frame is too long'])
  const command = aConnection(queues, { id: 'word', orgId: 'one' }, [])
  for (let n = 0; n < 100; n++) command.add(`+o${piece}`)
  assert.deepEqual(command.closed, ['1008 more was sent than may wait for its answer'])
  // An org has 128 Mi characters: whose connections hold most is cut for the others.
  const many = Array.from({ length: 20 }, (_, n) => aConnection(queues, { id: `${n}`, orgId: 'one' }, []))
  for (let n = 0; n < 150; n++) for (const one of many) one.add(`+e${piece}`)
  assert.ok(many.some(({ closed }) => closed[0]?.startsWith('1013 ')))
  assert.ok(many.some(({ closed }) => closed.length === 0))
  for (const one of many) one.end()
  const after = Array.from({ length: 10 }, (_, n) => aConnection(queues, { id: `${n}`, orgId: 'one' }, []))
  for (let n = 0; n < 150; n++) for (const one of after) one.add(`+e${piece}`)
  assert.deepEqual(
    after.flatMap(({ closed }) => closed),
    [],
  )
})

test('a connection ends when the rest of a frame does not come', () => {
  mock.timers.enable({ apis: ['setTimeout'] })
  try {
    const { add, closed } = aConnection(createFrameQueues(createPace()), { id: 'a', orgId: 'one' }, [])
    const part = `+e${'x'.repeat(64 * 1024)}`
    add(part)
    mock.timers.tick(59_000)
    add(part)
    mock.timers.tick(59_000)
    assert.deepEqual(closed, [])
    mock.timers.tick(1000)
    assert.deepEqual(closed, ['1008 the rest of a frame did not come'])
  } finally {
    mock.timers.reset()
  }
})
