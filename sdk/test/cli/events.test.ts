import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startFake } from '../_kit/fake-service.ts'
import { goingCli, jsonLines } from '../_kit/run-cli.ts'
import { aRun, sendSseHead } from '../_kit/samples.ts'

const SERIES = '5f0c2a9be4d1'
const run = aRun()

const frame = (event: string, position: number, data: object) =>
  `event: ${event}\ndata: ${JSON.stringify(data)}\nid: ${SERIES}.${position}\n\n`
const event = (type: string, workflow: string, cursor: number) => ({
  at: Date.UTC(2026, 10, 9, 9, 0, cursor),
  type,
  run: run.id,
  workflow,
  cursor,
  data: {},
})
const FRAMES = [
  frame('run.queued', 1, event('run.queued', 'hello', 1)),
  frame('run.failed', 2, event('run.failed', 'billing', 2)),
  frame('run.failed', 3, event('run.failed', 'hello', 3)),
]

async function aStream(t: Parameters<typeof startFake>[0], first: string) {
  return startFake(t, {
    'events.stream': (_, response) => {
      sendSseHead(response)
      response.write(frame(first, 0, { position: `${SERIES}.0` }) + FRAMES.join(''))
    },
  })
}

test('events shows what happens, of which run and workflow, until Ctrl-C says how to go on', async (t) => {
  const { url } = await aStream(t, 'ready')
  const going = goingCli(t, ['events'], { url })
  await going.prints(
    new RegExp(`queued  hello  ${run.id}\\n.*failed  billing  ${run.id}\\n.*failed  hello  ${run.id}\\n`),
  )
  const { code, stderr } = await going.interrupt()
  assert.equal(code, 130)
  assert.match(stderr, new RegExp(`No longer following.*windlass events --since ${SERIES}.3 to go on`, 's'))
})

test('events of one workflow and some types only', async (t) => {
  const { url } = await aStream(t, 'ready')
  const going = goingCli(t, ['events', '--workflow', 'hello', '--types', 'failed'], { url })
  await going.prints(/failed {2}hello/)
  const { stdout } = await going.interrupt()
  assert.equal(stdout.split('\n').length, 2)
})

test('events --json is a line an event, with its position, and one where events are gone', async (t) => {
  const { url } = await aStream(t, 'reset')
  const going = goingCli(t, ['events', '--json', '--since', `${SERIES}.0`], { url })
  await going.prints(/"cursor":3/)
  const { stdout } = await going.interrupt()
  assert.deepEqual(jsonLines(stdout), [
    { type: 'reset', position: `${SERIES}.0` },
    { position: `${SERIES}.1`, ...event('run.queued', 'hello', 1) },
    { position: `${SERIES}.2`, ...event('run.failed', 'billing', 2) },
    { position: `${SERIES}.3`, ...event('run.failed', 'hello', 3) },
  ])
})
