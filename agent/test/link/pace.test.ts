import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UpwardPace } from '../../link/pace.ts'

const KIB = 1024
const MIB = 1024 * KIB
/** What one second of a talkative program is sent in. */
const MESSAGE = 8 * KIB

/** A line that brings so many bytes in a second, each some milliseconds after it was sent, and pongs as late. */
function aLine({ bytesPerS = Infinity, delayMs = 0 }) {
  let now = 0
  /** When all that was sent has arrived. */
  let isEmptyAt = 0
  const pongs: { text: string; at: number }[] = []
  const line = {
    bytesPerS,
    pings: 0,
    pace: new UpwardPace({
      now: () => now,
      ping(text) {
        line.pings += 1
        pongs.push({ text, at: Math.max(isEmptyAt, now) + delayMs })
      },
    }),
    send(bytes: number) {
      isEmptyAt = Math.max(isEmptyAt, now) + (1000 * bytes) / line.bytesPerS
      line.pace.sent(bytes)
    },
    /** How long a heartbeat takes that is sent now. */
    waitMs: () => Math.max(0, isEmptyAt - now) + delayMs,
    /** Answers come so much later. */
    stall(ms: number) {
      for (const pong of pongs) pong.at += ms
      line.pass(2 * ms)
    },
    pass(ms: number) {
      const end = now + ms
      for (let next = pongs[0]; next && next.at <= end; next = pongs[0]) {
        now = Math.max(now, next.at)
        pongs.shift()
        line.pace.answered(next.text)
      }
      now = end
    },
    /** For so long, whatever there is room for is sent: how long a heartbeat would have had to wait at worst. */
    fill(ms: number, perTurn = 4 * MIB): number {
      let worstMs = 0
      for (let passed = 0; passed < ms; passed += 10) {
        for (let sent = 0; line.pace.hasRoom && sent < perTurn; sent += MESSAGE) line.send(MESSAGE)
        worstMs = Math.max(worstMs, line.waitMs())
        line.pass(10)
      }
      return worstMs
    },
  }
  return line
}

test('a heartbeat waits for seconds of the line, however slow it is, and the line is never idle', () => {
  for (const bytesPerS of [6 * KIB, 20 * KIB, 100 * KIB, 500 * KIB])
    for (const delayMs of [1, 200, 500]) {
      const line = aLine({ bytesPerS, delayMs })
      line.pace.ping()
      const worstMs = line.fill(60_000)
      assert.ok(worstMs < 8000, `${worstMs} ms at ${bytesPerS} bytes/s`)
      line.pass(10)
      assert.ok(line.waitMs() > delayMs, `idle at ${bytesPerS} bytes/s`)
    }
})

test('a fast line soon has no limit, and then no pings but the usual ones', () => {
  const line = aLine({ delayMs: 50 })
  line.fill(2000, 20 * MIB)
  assert.equal(line.pace.limitBytes, Infinity)
  const { pings } = line
  assert.ok(pings < 20, `${pings} pings`)
  line.fill(1000, MIB)
  assert.equal(line.pings, pings)
  line.pace.ping()
  assert.equal(line.pings, pings + 1)
})

test('an agent that says little over a fast line sends a ping a second at most', () => {
  const line = aLine({ delayMs: 1 })
  for (let second = 0; second < 60; second++) line.fill(1000, MESSAGE / 8)
  assert.ok(line.pings <= 70, `${line.pings} pings`)
})

test('what little was brought quickly does not raise the limit', () => {
  const line = aLine({ bytesPerS: 6 * KIB, delayMs: 20 })
  for (let second = 0; second < 600; second++) {
    line.send(KIB)
    line.pass(1000)
    if (second % 5 === 0) line.pace.ping()
  }
  assert.ok(line.fill(30_000) < 8000)
})

test('a line that becomes slow is given less, and more when it is fast again', () => {
  const line = aLine({ bytesPerS: 200 * KIB, delayMs: 20 })
  line.fill(20_000)
  line.bytesPerS = 20 * KIB
  line.fill(60_000)
  assert.ok(line.fill(20_000) < 8000)
  line.bytesPerS = Infinity
  line.fill(60_000)
  assert.equal(line.pace.limitBytes, Infinity)
})

test('a fast line whose usual ping is answered late has a limit from then on', () => {
  const line = aLine({ delayMs: 1 })
  line.fill(2000)
  line.bytesPerS = 6 * KIB
  line.send(64 * KIB)
  line.pace.ping()
  line.pass(11_000)
  assert.ok(line.pace.limitBytes < 64 * KIB)
})

test('one ping is under way at a time, and whoever waits for room goes on with its answer', async () => {
  const pings: string[] = []
  const pace = new UpwardPace({ now: () => 0, ping: (text) => pings.push(text) })
  pace.sent(16 * KIB)
  pace.sent(16 * KIB)
  pace.ping()
  assert.deepEqual(pings, ['1'])
  assert.equal(pace.hasRoom, false)
  let isRoom = false
  const room = pace.room().then(() => (isRoom = true))
  pace.answered('of another')
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isRoom, false)
  pace.answered('1')
  await room
  assert.equal(pace.limitBytes, 32 * KIB)
})

test('nobody waits any more when the connection is over', async () => {
  const pace = new UpwardPace({ now: () => 0, ping() {} })
  pace.sent(MIB)
  const room = pace.room()
  pace.end()
  await room
})

test('where no ping is ever answered but all else is, entries go on after 30 s, and pings too', async () => {
  let now = 0
  let pings = 0
  const pace = new UpwardPace({ now: () => now, ping: () => (pings += 1) })
  pace.sent(MIB)
  const room = pace.room()
  for (; now < 30_000; now += 5000) pace.ping()
  assert.equal(pings, 1)
  assert.equal(pace.hasRoom, false)
  pace.ping()
  await room
  pace.sent(MIB)
  assert.equal(pace.hasRoom, true)
  now += 5000
  pace.ping()
  assert.equal(pings, 2)
})

test('a long way makes no line slow: it brings what it can, also by satellite', () => {
  for (const delayMs of [1500, 3500]) {
    const line = aLine({ bytesPerS: MIB, delayMs })
    line.pace.ping()
    line.pass(delayMs)
    line.fill(60_000)
    assert.ok(line.pace.limitBytes > 2 * MIB, `${line.pace.limitBytes} bytes after a minute at ${delayMs} ms`)
  }
})

test('an answer that is late while nothing is under way leaves the limit as it is', () => {
  const line = aLine({ bytesPerS: 20 * KIB, delayMs: 10 })
  line.pace.ping()
  line.pass(100)
  line.fill(10_000)
  line.pass(60_000)
  const { limitBytes } = line.pace
  line.pace.ping()
  line.stall(5000)
  assert.equal(line.pace.limitBytes, limitBytes)
})
