import assert from 'node:assert/strict'
import test from 'node:test'
import { createSilence, hearPieces } from '../../link/silence.ts'

test('a body may take as long as it likes, while its pieces come', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const silence = createSilence(20_000, 1)
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const texts: string[] = []
  const read = hearPieces(readable, silence, (bytes) => void texts.push(bytes.toString()))
  const writer = writable.getWriter()
  for (const piece of ['a', '\u00e9', 'c']) {
    t.mock.timers.tick(15_000)
    await writer.write(Buffer.from(piece))
    await new Promise(setImmediate)
    assert.equal(silence.signal.aborted, false)
  }
  await writer.close()
  await read
  assert.deepEqual(texts, ['a', '\u00e9', 'c'])
  t.mock.timers.tick(20_000)
  assert.equal(silence.signal.aborted, true)
  assert.match(String(silence.signal.reason), /only 0 bytes have come in 20000 ms/)
})

test('what has ended is not silent', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const silence = createSilence(20_000, 1)
  silence.end()
  t.mock.timers.tick(20_000)
  assert.equal(silence.signal.aborted, false)
})
