import assert from 'node:assert/strict'
import test from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { aStage, texts } from '../programs.ts'

test('characters stay whole however they are written, and long lines come in pieces', async (t) => {
  const stage = await aStage(t)
  const { ending, events } = await stage.play('splits-characters.mjs')
  assert.equal(ending.how, 'returned')
  const lines = texts(events)
  assert.equal(lines.filter((line) => line === 'grün 日本 🌊').length, 2)
  const pieces = lines.filter((line) => line.startsWith('aaa'))
  assert.equal(pieces.join(''), 'a'.repeat(150_000))
  assert.ok(pieces.length > 2 && events.every((event) => JSON.stringify(event.data).length <= 64 * 1024))
})

test('a program that prints 100 MB neither grows the agent nor holds up others', async (t) => {
  const stage = await aStage(t)
  await stage.play('tells-in-order.mjs')
  const before = process.memoryUsage.rss()
  let bytes = 0
  let most = 0
  const start = await stage.start('prints-much.mjs', { inputText: '{"megabytes":100}' })
  // Taken slowly: each batch waits for some turns of the loop.
  const loud = stage.processes.run(start, async (batch) => {
    for (const text of texts(batch)) bytes += text.length + 1
    most = Math.max(most, process.memoryUsage.rss())
    await turn()
  })
  const quiet = await stage.play('tells-in-order.mjs')
  assert.equal(quiet.ending.how, 'returned')
  assert.deepEqual(await loud.done, { how: 'returned', outputText: '"printed"' })
  assert.equal(bytes, 100 * 1024 * 1024)
  assert.ok(most - before < 120 * 1024 * 1024, `grew by ${(most - before) >> 20} MB`)
})

test('a program waits while nobody takes its events', async (t) => {
  const stage = await aStage(t)
  const gate = Promise.withResolvers<void>()
  let given = 0
  const start = await stage.start('prints-much.mjs', { inputText: '{"megabytes":20}' })
  const program = stage.processes.run(start, (batch) => {
    given += batch.length
    return gate.promise
  })
  const first = await Promise.race([program.done, new Promise<'waits'>((resolve) => setTimeout(resolve, 500, 'waits'))])
  assert.equal(first, 'waits')
  assert.ok(given < 2_000, `${given} lines came through`)
  gate.resolve()
  assert.equal((await program.done).how, 'returned')
  assert.equal(given, 20 * 1024)
})

test('events that cannot be kept cost the run, not the agent', async (t) => {
  const stage = await aStage(t)
  const start = await stage.start('never-ends.mjs')
  const program = stage.processes.run(start, () => Promise.reject(new Error('the disk is full')))
  const ending = await program.done
  assert.ok(ending.how === 'lost')
  assert.match(ending.reason, /the disk is full/)
})
