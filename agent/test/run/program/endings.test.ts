import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aStage, texts } from '../programs.ts'

test('console, phase and log keep their order, and what run returns is the output', async (t) => {
  const stage = await aStage(t)
  const { ending, events } = await stage.play('tells-in-order.mjs', {
    inputText: '{"n":1}',
    attempt: 2,
    environment: 'staging',
  })
  const output = { attempt: 2, workflow: { slug: 'demo', version: 3 }, environment: 'staging' }
  assert.deepEqual(ending, { how: 'returned', outputText: JSON.stringify(output) })
  assert.deepEqual(texts(events), [
    'one',
    'two',
    'three',
    'four',
    'five',
    'six',
    'seven',
    'eight, without a line break',
  ])
  assert.deepEqual(events[1]?.data, { name: 'two', data: { input: { n: 1 } } })
  assert.deepEqual(events[4]?.data, { text: 'five', level: 'error', fields: { same: true } })
  const types = ['log.stdout', 'phase', 'log.stdout', 'log.stdout', 'log.stderr', 'log.stderr', 'phase', 'log.stdout']
  assert.deepEqual(
    events.map((event) => event.type),
    types,
  )
  assert.ok(events.every((event, i) => event.at >= (events[i - 1]?.at ?? 0)))
})

test('a program knows how its run was started, also from a coordinator that does not say it', async (t) => {
  const stage = await aStage(t)
  const trigger = {
    kind: 'schedule',
    id: 'sch_1',
    at: 1_795_165_200_000,
    late: 12,
    catchUp: false,
    manual: false,
  } as const
  const result = await stage.play('says-trigger.mjs', { trigger })
  assert.deepEqual(result.ending, { how: 'returned', outputText: JSON.stringify([trigger, trigger]) })
  const untold = await stage.play('says-trigger.mjs')
  assert.deepEqual(untold.ending, { how: 'returned', outputText: '[{"kind":"api"},{"kind":"api"}]' })
})

test('an error comes with the lines of the source, not of the bundle', async (t) => {
  const stage = await aStage(t)
  const { ending } = await stage.play('throws.ts', { inputText: '{"id":"o-1"}' })
  assert.equal(ending.how, 'threw')
  assert.ok(ending.how === 'threw')
  assert.deepEqual([ending.error.name, ending.error.message], ['TypeError', 'order o-1 is refused'])
  assert.match(ending.error.stack ?? '', /refuse \(.*throws\.ts:13:9\)\n\s+at .*run \(.*throws\.ts:9:3\)/)
  assert.doesNotMatch(ending.error.stack ?? '', /host\.cjs|main\.mjs/)
})

test('what is not JSON is refused with its path', async (t) => {
  const stage = await aStage(t)
  const cases = [
    ['bigint', 'OUTPUT_INVALID', 'total[1].sum'],
    ['cycle', 'OUTPUT_INVALID', 'rows[0].owner'],
    ['function', 'OUTPUT_INVALID', ''],
  ] as const
  for (const [what, code, where] of cases) {
    const { ending } = await stage.play('returns-odd.mjs', { inputText: JSON.stringify({ what }) })
    assert.ok(ending.how === 'threw', what)
    assert.deepEqual([ending.error.code, ending.error.detail], [code, { path: where }])
  }
  const nothing = await stage.play('returns-odd.mjs', { inputText: '{"what":"nothing"}' })
  assert.deepEqual(nothing.ending, { how: 'returned', outputText: 'null' })
  const large = await stage.play('returns-odd.mjs', { inputText: '{"what":"large"}' })
  assert.ok(large.ending.how === 'threw' && large.ending.error.code === 'OUTPUT_TOO_LARGE')
  assert.deepEqual(Object.keys(large.ending.error.detail ?? {}), ['bytes', 'limitBytes'])
})

test('a program that leaves by itself ends as it left', async (t) => {
  const stage = await aStage(t)
  const leaving = await stage.play('exits-3.mjs')
  assert.deepEqual(leaving.ending, { how: 'exited', exitCode: 3 })
  assert.deepEqual(texts(leaving.events), ['leaving'])
  assert.deepEqual((await stage.play('exits-0-early.mjs')).ending, { how: 'exited', exitCode: 0 })
  assert.deepEqual((await stage.play('kills-itself.mjs')).ending, { how: 'killed', signal: 'SIGKILL' })
})

test('errors outside of run fail the run', async (t) => {
  const stage = await aStage(t)
  for (const how of ['timer', 'promise']) {
    const { ending } = await stage.play('fails-later.mjs', { inputText: JSON.stringify({ how }) })
    assert.ok(ending.how === 'threw')
    assert.deepEqual([ending.error.name, ending.error.message], ['RangeError', `in a ${how}`])
  }
})

test('a program that cannot be executed says why', async (t) => {
  const stage = await aStage(t)
  const noRun = await stage.play('no-run.mjs')
  assert.ok(noRun.ending.how === 'threw')
  assert.match(noRun.ending.error.message, /exports no `run`/)
  const open = await stage.play('waits-for-nothing.mjs')
  assert.ok(open.ending.how === 'threw' && open.ending.error.code === 'RUN_NEVER_SETTLED')
  const missing = await stage.play('no-run.mjs', { bundleDir: path.join(stage.home, 'nowhere') })
  assert.ok(missing.ending.how === 'unready' && missing.ending.blame === 'host')
  assert.match(missing.ending.reason, /main\.mjs/)
})

test('a module may wait before it is ready', async (t) => {
  const stage = await aStage(t)
  const { ending, events } = await stage.play('awaits-at-top.mjs')
  assert.deepEqual(ending, { how: 'returned', outputText: '"ready"' })
  assert.deepEqual(texts(events), ['begun'])
})

test('a program that writes into the line of the runtime fails, and alone', async (t) => {
  const stage = await aStage(t)
  const [broken, fine] = await Promise.all([stage.play('writes-to-the-line.mjs'), stage.play('tells-in-order.mjs')])
  assert.ok(broken.ending.how === 'threw' && broken.ending.error.code === 'PROGRAM_LINE_BROKEN')
  assert.equal(fine.ending.how, 'returned')
})

test('a process that cannot be started puts the run off, and is the fault of the host', async (t) => {
  const stage = await aStage(t, { execPath: '/nonexistent/node' })
  const { ending } = await stage.play('tells-in-order.mjs')
  assert.ok(ending.how === 'unready' && ending.blame === 'host')
  assert.match(ending.reason, /nonexistent/)
})

test('nothing of a run stays in the workspaces', async (t) => {
  const stage = await aStage(t)
  const folder = path.join(stage.home, 'workspaces')
  for (let i = 0; i < 3; i++) {
    const { ending } = await stage.play('leaves-files.mjs')
    // What a program finds at its start is what it returns.
    assert.deepEqual(ending, { how: 'returned', outputText: '["tmp"]' })
  }
  await stage.play('tells-in-order.mjs')
  await until('files are gone', () =>
    readdirSync(folder, { recursive: true }).every((name) => /^\d+(\/tmp)?$/.test(String(name))),
  )
  assert.equal(stage.processes.stats().running, 0)
})
