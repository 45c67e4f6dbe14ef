import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { CHANNELS, type RunEvent } from '@windlass/shared/model/event.ts'
import { rows } from '@windlass/shared/ops/runs/ops.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { aReader, type SseFrame } from './sse-reader.ts'

const BACKUP_AT = 3
const LOST_AT = 6

let c: TestCoordinator
before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

/** Writes lines up to a cursor, as at one time. */
async function writeLines(run: string, upTo: number, at: number): Promise<void> {
  await c.db.begin(async (tx) => {
    await tx`
      insert into run_events (run_id, cursor, at, channel, type, data)
      select ${run}, n, ${at}, 'log', 'log.stdout', '{"text":"a line"}'
      from generate_series((select cursor + 1 from runs where id = ${run}), ${upTo}::int) n`
    await tx`update runs set cursor = ${upTo} where id = ${run}`
  })
}

/** A run with a log that a reader has read to its end. */
async function aRead(): Promise<{ run: RunId; last: SseFrame }> {
  const { id: run } = await aRun(c, { workflow: 'any' })
  await writeLines(run, LOST_AT, 1000)
  const reader = await following(run)
  const frames = await reader.has(LOST_AT)
  reader.leave()
  return { run, last: frames.at(-1)! }
}

/** What a restored backup has of a run; `upTo` is how far it has gone on since. */
async function restore(run: string, upTo = BACKUP_AT): Promise<void> {
  await c.db.begin(async (tx) => {
    await tx`delete from run_events where run_id = ${run} and cursor > ${BACKUP_AT}`
    await tx`update runs set cursor = ${BACKUP_AT} where id = ${run}`
  })
  await writeLines(run, upTo, 2000)
}

function following(run: string, lastEventId?: string, query = '') {
  return aReader(c, `/v1/runs/${run}/events/stream?channels=${CHANNELS.join(',')}${query}`, lastEventId)
}

/** The first frames of a reader who comes back. */
async function first(run: string, count: number, lastEventId: string, query = ''): Promise<SseFrame[]> {
  const reader = await following(run, lastEventId, query)
  await reader.has(count)
  return reader.leave().slice(0, count)
}

const idsOf = (frames: readonly SseFrame[]) => frames.map(({ event, id }) => (event === 'reset' ? 'reset' : id))
const exact = ({ id, data }: SseFrame) => `${id}.${(JSON.parse(data) as RunEvent).at}`

test('a reader whose last event a restore has taken away is told, and gets the log from its first event', async () => {
  const { run, last } = await aRead()
  await restore(run)
  const [reset, ...events] = await first(run, 1 + BACKUP_AT, last.id!)
  assert.equal(reset!.event, 'reset')
  // Whoever breaks off just now begins with the first event as well.
  assert.equal(reset!.id, '0')
  assert.match((JSON.parse(reset!.data) as { message: string }).message, /was restored to an earlier state/)
  assert.deepEqual(idsOf(events), ['1', '2', '3'])
  assert.deepEqual(idsOf(await first(run, BACKUP_AT, '0')), ['1', '2', '3'])
})

test('it is told so too when the run has ended, before the end', async () => {
  const { run, last } = await aRead()
  await restore(run)
  await c.call(rows.cancel, { run })
  const frames = await (await following(run, last.id)).ended()
  assert.deepEqual(
    frames.map(({ event }) => event),
    ['reset', 'run.queued', 'log.stdout', 'log.stdout', 'run.cancelling', 'run.cancelled', 'done'],
  )
})

test('with the time of its last event it is told when the run has gone on past that cursor', async () => {
  const { run, last } = await aRead()
  await restore(run, LOST_AT + 2)
  assert.deepEqual(idsOf(await first(run, 3, exact(last))), ['reset', '1', '2'])
})

test('what was read before the backup is still there, and the reader goes on behind it', async () => {
  const { run } = await aRead()
  const before = (await first(run, BACKUP_AT, '0')).find(({ id }) => id === String(BACKUP_AT))!
  await restore(run, LOST_AT)
  for (const id of [before.id!, exact(before)]) assert.deepEqual(idsOf(await first(run, 3, id)), ['4', '5', '6'])
})

test('`since` beyond the end of the log is a filter, and no reader who comes back', async () => {
  const { run } = await aRead()
  const reader = await following(run, undefined, `&since=${LOST_AT + 1}`)
  await writeLines(run, LOST_AT + 2, 3000)
  c.deps.tails.ring(run)
  await reader.has(1)
  assert.deepEqual(idsOf(reader.leave()), [String(LOST_AT + 2)])
  // It has read on elsewhere.
  assert.deepEqual(idsOf(await first(run, 1, '99', '&since=7')), ['reset'])
})

test('where a reader comes back counts more than its `since`, which is that of before the restore', async () => {
  const { run, last } = await aRead()
  await restore(run)
  const since = `&since=${LOST_AT}`
  assert.deepEqual(idsOf(await first(run, 2, last.id!, since)), ['reset', '1'])
  assert.deepEqual(idsOf(await first(run, 2, '1', since)), ['2', '3'])
  // It broke off behind the reset.
  assert.deepEqual(idsOf(await first(run, 2, '0', since)), ['1', '2'])
})
