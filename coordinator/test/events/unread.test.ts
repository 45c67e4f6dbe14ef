import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { CHANNELS } from '@windlass/shared/model/event.ts'
import { within } from '@windlass/shared/time.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { SseSink } from '../../events/pour.ts'
import { liveStream } from '../../events/stream.ts'
import { createUnreadBytes } from '../../limits/unread-bytes.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MIB = 1024 * 1024
const LARGE = 200
const LOG_BYTES = LARGE * 15_000

let c: TestCoordinator
before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

/** A run with many large events in its log. */
async function aLongLog(): Promise<RunId> {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db.begin(async (tx) => {
    await tx`
      insert into run_events (run_id, cursor, at, channel, type, data)
      select ${id}, n, 0, 'log', 'log.stdout', json_build_object('text', repeat('z', 15000))::text
      from generate_series(2, ${LARGE + 1}::int) n`
    await tx`update runs set cursor = ${LARGE + 1} where id = ${id}`
  })
  return id
}

/** Takes `room` characters; from then on it says that it is full, until it is drained. */
function aSink(room: number, spend: () => void = () => {}) {
  const gone = new AbortController()
  const seen: number[] = []
  let free = room
  let waiting = Promise.withResolvers<void>()
  let written = 0
  const leave = () => {
    gone.abort()
    waiting.resolve()
  }
  const sink: SseSink = {
    write(text) {
      spend()
      written += text.length
      for (const [, id] of text.matchAll(/^id: (\d+)$/gm)) seen.push(Number(id))
      free -= text.length
      return free >= 0
    },
    drained: () => waiting.promise,
    close: leave,
    cut: leave,
    gone: gone.signal,
  }
  const drain = () => {
    free = room
    waiting.resolve()
    waiting = Promise.withResolvers()
  }
  return { sink, seen, leave, drain, written: () => written, isFull: () => free < 0 }
}

type Sink = ReturnType<typeof aSink>

/** Gives the log of a run to each of them, until they leave. */
async function pour(run: RunId, sinks: Sink[], unread = c.deps.unread): Promise<{ end: () => Promise<unknown> }> {
  const query = { run, since: 0, channels: [...CHANNELS] }
  const streams = await Promise.all(sinks.map(() => liveStream({ ...c.deps, unread }, c.orgId, query)))
  const ended = sinks.map(({ sink }, i) => streams[i]!(sink))
  return {
    end() {
      for (const { leave } of sinks) leave()
      return within(DEADLINE_MS, Promise.all(ended), 'a stream goes on without its reader')
    },
  }
}

test('readers that take nothing hold little of a long log, and others get all of it', async () => {
  const run = await aLongLog()
  const stuck = Array.from({ length: 50 }, () => aSink(1000))
  const brisk = aSink(Infinity)
  const { end } = await pour(run, [...stuck, brisk])
  await untilPolled('the whole log', () => brisk.seen.length === LARGE + 1)
  await untilPolled('all to be full', () => stuck.every(({ isFull }) => isFull()))
  assert.deepEqual(
    stuck.filter(({ written }) => written() > 256 * 1024).map(({ written }) => written()),
    [],
    `of ${LOG_BYTES} bytes`,
  )
  await end()
})

test('a reader that was full gets what follows once it has taken what it had, each event once', async () => {
  const run = await aLongLog()
  const slow = aSink(1000)
  const { end } = await pour(run, [slow])
  while (slow.seen.length <= LARGE) {
    const before = slow.seen.length
    await untilPolled('the next page', () => slow.isFull() && slow.seen.length > before)
    slow.drain()
  }
  assert.deepEqual(
    slow.seen,
    Array.from({ length: LARGE + 1 }, (_, i) => i + 1),
  )
  await end()
})

test('a page goes to many readers over several turns of the event loop', async () => {
  const run = await aLongLog()
  let turns = 0
  const turnOf: number[] = []
  const busy = () => {
    turnOf.push(turns)
    for (const end = performance.now() + 2; performance.now() < end;);
  }
  const sinks = Array.from({ length: 20 }, () => aSink(1000, busy))
  const { end } = await pour(run, sinks)
  const counting = setInterval(() => turns++)
  turnOf.length = 0
  await untilPolled('all to be full', () => sinks.every(({ isFull }) => isFull()))
  clearInterval(counting)
  assert.ok(new Set(turnOf).size > 2, `their turns: ${turnOf.join()}`)
  await end()
})

test('over the limit of unread bytes the slowest readers are cut, and others read on', async () => {
  const run = await aLongLog()
  const unread = createUnreadBytes({ org: MIB, all: MIB, log: c.deps.log })
  const stuck = Array.from({ length: 20 }, () => aSink(1000))
  const brisk = aSink(Infinity)
  const { end } = await pour(run, [...stuck, brisk], unread)
  await untilPolled('the whole log', () => brisk.seen.length === LARGE + 1)
  await untilPolled('all to be full or cut', () => stuck.every(({ isFull }) => isFull()))
  const left = stuck.filter(({ sink }) => !sink.gone.aborted)
  const held = left.reduce((sum, { written }) => sum + written(), 0)
  assert.ok(held <= MIB && left.length > 0 && left.length < 20, `${left.length} readers hold ${held} bytes`)
  assert.equal(brisk.sink.gone.aborted, false)
  await end()
})
