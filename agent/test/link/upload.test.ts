// In which order the spool is sent, and that nothing is missing or twice, whatever is written and cut meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { Spool } from '../../run/spool/spool.ts'
import { anEntry, aReceiver, aSpool, type Receiver, textsOf } from '../_kit/a-spool.ts'
import { aFolder, type Logged } from '../_kit/an-agent.ts'

const RUNS = ['run_a', 'run_b', 'run_c']
/** More than one placement may have to send before it is sent behind the others. */
const FLOOD = 9_000
/** Of a line of which 70 fill the window. */
const LONG = 60_000

async function withSpool(act: (spool: Spool & Logged) => Promise<void>): Promise<void> {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder, { awayMs: 1 })
  try {
    spool.open(RUNS.map((run) => [run, 1]))
    await act(spool)
  } finally {
    spool.close()
    await remove()
  }
}

/** Says its next numbers, filled up with blanks. */
function sayer(spool: Spool) {
  const counts = new Map<string, number>()
  const say = (run: string, count: number, chars = 0) => {
    const from = counts.get(run) ?? 0
    counts.set(run, from + count)
    void spool.append(
      run,
      1,
      Array.from({ length: count }, (_, i) => anEntry(String(from + i + 1).padEnd(chars))),
    )
  }
  return { say, counts }
}

const received = (receiver: Receiver, run: string) => receiver.got.get(`${run}/1`) ?? []

function acknowledge(spool: Spool, receiver: Receiver): void {
  for (const run of RUNS) spool.ack(run, 1, received(receiver, run).length)
  receiver.upload.settle()
}

/** Acknowledges what comes until all has come, in order and once. */
async function comesWhole(spool: Spool, receiver: Receiver, counts: ReadonlyMap<string, number>): Promise<void> {
  const isThere = () =>
    receiver.gaps > 0 || [...counts].every(([run, count]) => received(receiver, run).length >= count)
  await untilPolled('all that was said', () => {
    acknowledge(spool, receiver)
    return isThere()
  })
  assert.equal(receiver.gaps, 0)
  for (const [run, count] of counts) {
    const expected = Array.from({ length: count }, (_, i) => String(i + 1))
    const texts = textsOf(received(receiver, run)).map((text) => text.trimEnd())
    assert.deepEqual(texts, expected, run)
  }
}

/** How many of a run have come when the last of the other one comes. */
function comeBefore(receiver: Receiver, { of, last }: { of: string; last: [run: string, count: number] }) {
  const come = { count: 0 }
  receiver.onFrame = () => {
    if (received(receiver, last[0]).length < last[1]) come.count = received(receiver, of).length
  }
  return come
}

test('what others say does not stand behind a long backlog', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    for (let i = 0; i < 6; i++) say('run_a', FLOOD)
    say('run_b', 1)
    spool.flush()
    const receiver = aReceiver(spool)
    receiver.connect()
    await untilPolled('the one entry', () => received(receiver, 'run_b').length === 1)
    await untilPolled('some of the backlog', () => received(receiver, 'run_a').length > 0)
    say('run_b', 1)
    spool.flush()
    assert.equal(received(receiver, 'run_b').length, 2)
    assert.ok(received(receiver, 'run_a').length < 6 * FLOOD)
    await comesWhole(spool, receiver, counts)
  })
})

test('what others say does not stand behind a backlog of long lines', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    say('run_a', 300, LONG)
    say('run_b', 1)
    spool.flush()
    const receiver = aReceiver(spool)
    const before = comeBefore(receiver, { of: 'run_a', last: ['run_b', 1] })
    receiver.connect()
    await comesWhole(spool, receiver, counts)
    assert.ok(before.count < 100, `${before.count} lines`)
  })
})

test('who says more than memory takes is read from the files, and the others are not', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    const receiver = aReceiver(spool)
    receiver.connect()
    await untilPolled('it is live', () => {
      say('run_c', 1)
      spool.flush()
      return received(receiver, 'run_c').length > 0
    })
    // The window is full with the first 70.
    say('run_a', 300, LONG)
    say('run_b', 1)
    spool.flush()
    const before = comeBefore(receiver, { of: 'run_a', last: ['run_b', 1] })
    await comesWhole(spool, receiver, counts)
    assert.ok(before.count < 200, `${before.count} lines`)
  })
})

test('of two that have said much, one does not stand behind all of the other', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    say('run_a', 400, LONG)
    say('run_b', 100, LONG)
    spool.flush()
    const receiver = aReceiver(spool)
    const before = comeBefore(receiver, { of: 'run_a', last: ['run_b', 100] })
    receiver.connect()
    await comesWhole(spool, receiver, counts)
    assert.ok(before.count < 300, `${before.count} lines`)
  })
})

test('what was acknowledged and is asked for again is read where it stands', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    say('run_b', 1)
    say('run_a', 3)
    spool.flush()
    spool.ack('run_a', 1, 3)
    // Another file, and only what stands there is not acknowledged.
    say('run_c', 80, LONG)
    say('run_a', 1)
    spool.flush()
    const receiver = aReceiver(spool)
    receiver.connect()
    receiver.disconnect()
    receiver.connect()
    receiver.askAgain('run_a', 0)
    await comesWhole(spool, receiver, counts)
  })
})

test('placements that say much at once are sent in turns', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    const receiver = aReceiver(spool)
    receiver.connect()
    await untilPolled('it is live', () => {
      say('run_c', 1)
      spool.flush()
      return received(receiver, 'run_c').length > 0
    })
    receiver.block(true)
    for (let i = 0; i < 3; i++) for (const run of ['run_a', 'run_b']) say(run, FLOOD)
    say('run_c', 1)
    spool.flush()
    const before = received(receiver, 'run_c').length
    receiver.block(false)
    await untilPolled('the entry of the third', () => received(receiver, 'run_c').length > before)
    assert.ok(received(receiver, 'run_a').length < 3 * FLOOD)
    await comesWhole(spool, receiver, counts)
  })
})

test('over a slow line frames are short, from memory and from the files', async () => {
  await withSpool(async (spool) => {
    const { say, counts } = sayer(spool)
    const receiver = aReceiver(spool)
    receiver.frameChars = 16_384
    let longest = 0
    receiver.onFrame = (text) => (longest = Math.max(longest, text.length))
    say('run_a', FLOOD)
    spool.flush()
    receiver.connect()
    await untilPolled('it is live', () => {
      say('run_c', 1)
      spool.flush()
      return received(receiver, 'run_c').length > 0
    })
    say('run_b', FLOOD)
    await comesWhole(spool, receiver, counts)
    assert.ok(longest > 16_384 && longest < 17_000, `${longest} characters`)
  })
})

test('what a former connection has brought is not missed when its file is gone', async () => {
  await withSpool(async (spool) => {
    const { say } = sayer(spool)
    // More than one file takes, and not so many that it is sent behind the others.
    for (let i = 0; i < 80; i++) void spool.append('run_a', 1, [anEntry('x'.repeat(60_000))])
    spool.flush()
    const { written } = spool.find('run_a', 1)!
    say('run_b', 1)
    spool.flush()
    const first = spool.reader.oldest().segment
    const receiver = aReceiver(spool)
    receiver.connect()
    // The coordinator knew nothing of it yet when it said welcome.
    spool.ack('run_a', 1, written)
    assert.ok(spool.reader.oldest().segment > first, 'the file is gone')
    await untilPolled('the other', () => received(receiver, 'run_b').length === 1)
    await untilPolled('it is live', () => {
      say('run_b', 1)
      spool.flush()
      return received(receiver, 'run_b').length > 1
    })
    assert.equal(receiver.gaps, 0)
  })
})

test('whatever is written, cut and acknowledged: all comes once and in order', async (t) => {
  const run = fc.constantFrom(...RUNS)
  const say = fc.record({ do: fc.constant('say'), run, count: fc.constantFrom(1, 3, 700, FLOOD, 2 * FLOOD) })
  const long = fc.record({ do: fc.constant('long'), run, count: fc.constantFrom(1, 10, 80) })
  const act = fc.record({
    do: fc.constantFrom('flush', 'connect', 'again', 'cut', 'ack', 'turns'),
    run,
    count: fc.integer({ min: 1, max: 8 }),
  })
  const step = fc.oneof({ arbitrary: say, weight: 3 }, { arbitrary: long, weight: 1 }, { arbitrary: act, weight: 4 })
  const scenario = fc.record({
    steps: fc.array(step, { maxLength: 25 }),
    memoryBytes: fc.constantFrom(4_000, 2 ** 20),
    frameChars: fc.constantFrom(Infinity, 16_384),
  })
  await fc.assert(
    fc.asyncProperty(scenario, ({ steps, memoryBytes, frameChars }) =>
      withSpool(async (spool) => {
        const { say: says, counts } = sayer(spool)
        const receiver = aReceiver(spool, memoryBytes)
        receiver.frameChars = frameChars
        for (const each of steps) {
          if (each.do === 'say') says(each.run, each.count)
          else if (each.do === 'long') says(each.run, each.count, LONG)
          else if (each.do === 'flush') spool.flush()
          else if (each.do === 'connect') receiver.connect()
          else if (each.do === 'again') receiver.askAgain(each.run)
          else if (each.do === 'cut') receiver.disconnect()
          else if (each.do === 'ack') acknowledge(spool, receiver)
          else for (let i = 0; i < each.count; i++) await new Promise((resolve) => setImmediate(resolve))
        }
        spool.flush()
        receiver.connect()
        await comesWhole(spool, receiver, counts)
      }),
    ),
    { numRuns: 60, ...repeatable(t) },
  )
})
