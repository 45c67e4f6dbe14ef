import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { aRunningAgent, end, type Held, line, placementOf, returned, start, takeNext } from '../_kit/agent.ts'
import { aCoordinator, aRun, logOf, rawCall, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: Held['agent']
let link: Held['link']

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aRun(c, { workflow: 'any' })
  const held = await aRunningAgent(c)
  agent = held.agent
  link = held.link
  await link.report(held.offer, 2, end(returned(null)))
})

after(async () => {
  agent?.close()
  await c?.stop()
})

const deep = (levels: number) => '['.repeat(levels) + ']'.repeat(levels)

/** A run for which the agent sends these entries, as text: some are not what the types allow. */
async function logAfter(...entries: string[]): Promise<{ run: Run; log: RunEvent[] }> {
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const { run, epoch } = offer
  link.sendText(
    `{"t":"entries","batches":[{"run":"${run}","epoch":${epoch},"first":2,"entries":[${entries.join(',')}]}]}`,
  )
  assert.equal((await link.verdict(offer)).kind, 'ack')
  return { run: await runOf(c, run), log: await logOf(c, run) }
}

const ended = (ending: Ending) => logAfter(JSON.stringify(end(ending)))
const event = (type: string, dataText: string) => JSON.stringify(['e', Date.now(), type, dataText] satisfies Entry)

test('an error whose detail is too deep for JSON ends its run, and does not come back for ever', async () => {
  const { run } = await logAfter(
    `["end",1,{"how":"threw","error":{"message":"boom","detail":{"d":${deep(200_000)}}}},1]`,
  )
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.message, 'boom')
  assert.equal(run.error?.detail?.['truncated'], true)
})

test('an error takes no more room in the record than an error should', async () => {
  const much = 'x'.repeat(3_000_000)
  const { run } = await ended({ how: 'threw', error: { name: much, message: much, stack: much, detail: { much } } })
  assert.equal(run.status, 'failed')
  assert.ok(JSON.stringify(run).length < 40_000, `${JSON.stringify(run).length} characters`)
})

test('the reason of a lost run is cut', async () => {
  for (const ending of [
    { how: 'lost', reason: 'r'.repeat(1_000_000) },
    { how: 'killed', signal: 'S'.repeat(1_000_000) },
  ] as const) {
    const { run, log } = await ended(ending)
    assert.equal(run.status, 'queued')
    assert.ok(JSON.stringify(log).length < 20_000, ending.how)
    // Out of the way of the runs to come.
    await rawCall(c, 'POST', `/v1/runs/${run.id}/cancel`, '{}')
  }
})

test('an output that is too large, too deep or no JSON fails its run', async () => {
  const cases: [outputText: string, code: string][] = [
    [JSON.stringify('x'.repeat(2_000_000)), 'OUTPUT_TOO_LARGE'],
    [deep(100_000), 'OUTPUT_INVALID'],
    ['}{', 'OUTPUT_INVALID'],
    ['\0', 'OUTPUT_INVALID'],
    ['', 'OUTPUT_INVALID'],
  ]
  for (const [outputText, code] of cases) {
    const { run } = await ended({ how: 'returned', outputText })
    assert.equal(run.error?.code, code, outputText.slice(0, 20))
  }
})

test('whatever the data of events holds, pages stay JSON and streams keep their frames', async () => {
  const { run, log } = await logAfter(
    event('log.stdout', '{"text":'),
    event('log.stdout', '{}\n\nevent: done\ndata: {}'),
    event('log.stdout', '{"text":\r\n\r\n"two lines"}'),
    event('log.stdout\n\nevent: done', '{}'),
    event('run.completed', '{}'),
    event('__proto__', '{}'),
    event('phase', '[]'),
    event('phase', '{"name":"a"} {"name":"b"}'),
    event('phase', `{"name":"deep","data":${deep(20_000)}}`),
    JSON.stringify(end(returned(null))),
    JSON.stringify(line('after the end')),
  )
  assert.equal(run.status, 'completed')
  assert.deepEqual(
    log.filter(({ channel }) => channel !== 'log').map(({ type }) => type),
    ['run.queued', 'run.pending', 'run.running', 'output', 'run.completed'],
  )
  const stream = await rawCall(c, 'GET', `/v1/runs/${run.id}/events/stream?channels=lifecycle,phase,log,output`)
  const lines = (await stream.text()).split('\n')
  assert.deepEqual(
    lines.filter((text) => !/^(?:$|:|event: [a-z.]+$|data: \{.*\}$|id: \d+$)/.test(text)),
    [],
  )
  assert.equal(lines.filter((text) => text === 'event: done').length, 1)
  assert.equal(lines.filter((text) => text.startsWith('id: ')).length, log.length)
})

test('only the first end counts, and the same entries sent three times count once', async () => {
  const { run, log } = await logAfter(
    ...[end(returned(1)), end(returned(2)), start()].map((entry) => JSON.stringify(entry)),
  )
  assert.equal(run.status, 'completed')
  assert.equal(log.filter(({ type }) => type === 'output').length, 1)
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const batch = { run: offer.run, epoch: offer.epoch, first: 2, entries: [line('once'), end(returned(1))] }
  link.send({ t: 'entries', batches: [batch, batch, batch] })
  assert.deepEqual(await link.verdict(offer), { kind: 'ack', seq: 3 })
  assert.equal((await logOf(c, offer.run)).filter(({ type }) => type === 'log.stdout').length, 1)
})

test('an agent that does not wait for answers is cut off before it fills the memory', async () => {
  await aRun(c, { workflow: 'any' })
  const offer = await takeNext(agent, link)
  const frame = { t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first: 2, entries: [line('again')] }] }
  const text = JSON.stringify({ ...frame, filling: 'x'.repeat(8 * 1024 * 1024) })
  // While this lock is held nothing is answered.
  await c.db.begin(async (tx) => {
    await tx`select 1 from runs where id = ${offer.run} for update`
    for (let count = 0; count < 8; count++) link.sendText(text)
    assert.deepEqual(await link.closed(), { code: 1008, reason: 'more was sent than may wait for its answer' })
  })
  link = await agent.connect([placementOf(offer)])
  assert.deepEqual(await link.report(offer, 2, line('again'), end(returned(null))), { kind: 'ack', seq: 3 })
  assert.equal((await logOf(c, offer.run)).filter(({ type }) => type === 'log.stdout').length, 1)
})
