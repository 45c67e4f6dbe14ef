import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aReceiver, aSpool, anEntry, type Receiver } from '../_kit/a-spool.ts'
import { aFolder } from '../_kit/an-agent.ts'

type Spool = Awaited<ReturnType<typeof aSpool>>

const MIB = 1024 * 1024
const LINE = 'x'.repeat(1000)
const LINES = 20_000
/** Lines of one placement that fill half of 4 MiB as they are counted, each with 256 more. */
const SHARE = Math.ceil((2 * MIB) / (JSON.stringify(anEntry(LINE)).length + 256))
/** Commas and heads of batches count too, so that it may be full with some lines less. */
const NEARLY_FULL = Math.floor(0.95 * SHARE)
/** Lines of the batch with which it passes its share. */
const BATCH = 260

test('what is not acknowledged waits on disk, not in the memory of the coordinator', () => sendsByWindows(8 * MIB))

test('what no longer fits into memory is read back from disk only when there is room on the way', () =>
  sendsByWindows(MIB))

async function sendsByWindows(memoryBytes: number): Promise<void> {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  const receiver = aReceiver(spool, memoryBytes)
  const received = () => receiver.got.get('run_a/1')?.length ?? 0
  let acked = 0
  let most = 0
  receiver.onFrame = () => (most = Math.max(most, received() - acked))
  try {
    spool.open([['run_a', 1]])
    receiver.connect()
    for (let n = 0; n < LINES; n++) {
      void spool.append('run_a', 1, [anEntry(LINE)])
      if (n % 100 === 0) await new Promise((resolve) => setImmediate(resolve))
    }
    spool.flush()
    // One answer after the other, and never more than its share of the window ahead of it.
    while (received() < LINES) {
      await until('its share is full', () => received() - acked >= Math.min(NEARLY_FULL, LINES - acked))
      acked = received()
      spool.ack('run_a', 1, acked)
      receiver.upload.settle()
    }
    assert.ok(most < SHARE + BATCH, `a frame was sent ${most} lines after the last answer`)
    assert.equal(receiver.gaps, 0)
  } finally {
    spool.close()
    await remove()
  }
}

const STUCK = Array.from({ length: 40 }, (_, n) => `run_stuck_${n}`)

/** Of these nothing is ever acknowledged; what `run_b` says is acknowledged as it comes. */
async function besideStuck(memoryBytes: number, act: (spool: Spool, receiver: Receiver) => Promise<void>) {
  const { folder, remove } = await aFolder()
  const spool = await aSpool(folder)
  const receiver = aReceiver(spool, memoryBytes)
  try {
    spool.open([...STUCK, 'run_b'].map((run) => [run, 1]))
    await act(spool, receiver)
    assert.equal(receiver.gaps, 0)
  } finally {
    spool.close()
    await remove()
  }
}

async function comes(spool: Spool, receiver: Receiver, lines: number): Promise<void> {
  const come = () => receiver.got.get('run_b/1')?.length ?? 0
  await untilPolled(`${lines} lines`, () => {
    if (come() > spool.find('run_b', 1)!.acked) {
      spool.ack('run_b', 1, come())
      receiver.upload.settle()
    }
    return come() >= lines
  })
}

function say(spool: Spool, run: string, lines = 1_000): void {
  for (let n = 0; n < lines; n++) void spool.append(run, 1, [anEntry(LINE)])
}

function sayShort(spool: Spool, run: string): void {
  for (let n = 0; n < 10_000; n++) void spool.append(run, 1, [anEntry('')])
}

test('one entry that is acknowledged late holds up nothing of other runs', () =>
  besideStuck(8 * MIB, async (spool, receiver) => {
    receiver.connect()
    void spool.append(STUCK[0]!, 1, [anEntry('a question that is looked at for long')])
    spool.flush()
    await untilPolled('the one entry', () => receiver.got.size === 1)
    say(spool, 'run_b', 8_000)
    await comes(spool, receiver, 8_000)
  }))

for (const [of, sayMuch] of [['long', say] as const, ['short', sayShort] as const])
  for (const memoryBytes of [64 * MIB, MIB])
    test(`many runs with ${of} lines that wait for answers hold up no other: ${memoryBytes / MIB} MiB of memory`, () =>
      besideStuck(memoryBytes, async (spool, receiver) => {
        receiver.connect()
        for (const run of STUCK) {
          sayMuch(spool, run)
          await new Promise((resolve) => setImmediate(resolve))
        }
        spool.flush()
        sayMuch(spool, 'run_b')
        await comes(spool, receiver, spool.find('run_b', 1)!.written)
        assert.equal([...receiver.got.keys()].length, STUCK.length + 1)
      }))

test('so it is after an outage, when all that was said is read from the files', () =>
  besideStuck(8 * MIB, async (spool, receiver) => {
    for (const run of STUCK) sayShort(spool, run)
    say(spool, 'run_b', 8_000)
    spool.flush()
    receiver.connect()
    await comes(spool, receiver, 8_000)
    // As it is acknowledged, it goes on where it was, and in order.
    const [stuck] = STUCK
    const come = () => receiver.got.get(`${stuck!}/1`)?.length ?? 0
    await untilPolled('all of one of them', () => {
      spool.ack(stuck!, 1, come())
      receiver.upload.settle()
      return come() === 10_000
    })
  }))

test('when the coordinator asks for one run again, what others have under way counts as before', () =>
  besideStuck(8 * MIB, async (spool, receiver) => {
    let chars = 0
    receiver.onFrame = (text) => (chars += text.length)
    for (const run of STUCK) say(spool, run)
    void spool.append('run_b', 1, [anEntry('one')])
    spool.flush()
    receiver.connect()
    await untilPolled('all have begun', () => receiver.got.size === STUCK.length + 1)
    const before = chars
    for (let n = 0; n < 8; n++) {
      receiver.askAgain('run_b', 0)
      await untilPolled('it is sent again', () => spool.find('run_b', 1)!.sent === 1)
    }
    assert.ok(chars - before < MIB, `${chars - before} characters more`)
    assert.equal(spool.find('run_b', 1)!.sent, 1)
    // One that is asked for again itself has its share anew.
    const [stuck] = STUCK
    receiver.askAgain(stuck!, 0)
    await untilPolled('it is sent again', () => spool.find(stuck!, 1)!.sent > 0)
    say(spool, 'run_b')
    await comes(spool, receiver, 1_001)
  }))
