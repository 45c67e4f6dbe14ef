import assert from 'node:assert/strict'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { aProgram } from '../_kit/bundle.ts'
import { withAgent } from '../_kit/with-agent.ts'

const KIB = 1024

/** Events as they are sent, with what they say and how many bytes that takes. */
function eventsOf({ entries }: FakePlacement) {
  return entries.flatMap((entry) => {
    if (entry[0] !== 'e') return []
    const [, , type, text] = entry
    return [{ type, bytes: Buffer.byteLength(text), data: JSON.parse(text) as Record<string, unknown> }]
  })
}

withAgent('the data of a phase may have what its coordinator allows; more is named by its size', async ({ fake }) => {
  const program = await aProgram(`phase('most', 'x'.repeat(input - 2))
    phase('more', 'x'.repeat(input - 1))
    return 'went on'`)
  for (const limitBytes of [4 * KIB, 64 * KIB, 256 * KIB]) {
    const placement = fake.offer(program, { inputText: String(limitBytes), eventDataBytes: limitBytes })
    assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"went on"' })
    const [most, more, warning] = eventsOf(placement)
    assert.deepEqual(most!.data, { name: 'most', data: 'x'.repeat(limitBytes - 2) })
    const note = { truncated: true, bytes: limitBytes + 1, limitBytes }
    assert.deepEqual(more!.data, { name: 'more', data: note })
    assert.deepEqual([warning!.type, warning!.data['level']], ['log.stderr', 'warn'])
    const why = `data has ${limitBytes + 1} bytes of JSON and was left out, as ${limitBytes} are allowed.`
    const text = `phase('more', data): ${why}`
    assert.ok((warning!.data['text'] as string).startsWith(text), String(warning!.data['text']))
  }
})

withAgent('lines and fields of a log keep to what the coordinator allows', async ({ fake }) => {
  const program = await aProgram(`console.log('y'.repeat(20000))
    log('z'.repeat(20000))
    log.warn('fields', { large: 'x'.repeat(5000) })
    return 1`)
  const placement = fake.offer(program, { eventDataBytes: 4 * KIB })
  assert.equal((await fake.ending(placement)).how, 'returned')
  const events = eventsOf(placement)
  for (const { bytes } of events) assert.ok(bytes <= 4 * KIB, `${bytes}`)
  const texts = events.map(({ data }) => data['text']).join('')
  assert.equal(texts, `${'y'.repeat(20_000)}${'z'.repeat(20_000)}fields`)
  const { bytes, ...note } = events.at(-1)!.data['fields'] as Record<string, unknown>
  assert.deepEqual(note, { omitted: 'the fields are too large', limitBytes: 4 * KIB })
  assert.ok((bytes as number) > 5000)
})

withAgent('a coordinator that names no limit gets events of 64 KiB at most', async ({ fake }) => {
  const program = await aProgram(`for (const bytes of [60000, 66000]) phase('large', 'x'.repeat(bytes))
    console.log('y'.repeat(100000))
    log('fields', { large: 'x'.repeat(65000) })
    return 1`)
  const placement = fake.offer(program, { eventDataBytes: undefined })
  assert.equal((await fake.ending(placement)).how, 'returned')
  const events = eventsOf(placement)
  for (const { bytes } of events) assert.ok(bytes <= 64 * KIB, `${bytes}`)
  assert.equal((events[0]!.data['data'] as string).length, 60_000)
  assert.equal((events[1]!.data['data'] as Record<string, unknown>)['truncated'], true)
})
