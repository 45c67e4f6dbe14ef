import assert from 'node:assert/strict'
import { test } from 'node:test'
import { SseParser } from '../../client/sse.ts'

const STREAM =
  '\uFEFF: hello\n\nevent: phase\r\ndata: {"a":\r\ndata: 1}\r\nid: 7\r\n\r\n:heartbeat\rdata:x\r\rid: 8\n\ndata: é→\n\n'
const FRAMES = [
  { event: 'phase', id: '7', data: '{"a":\n1}' },
  { event: 'message', id: '7', data: 'x' },
  { event: 'message', id: '8', data: 'é→' },
]

test('frames come out alike wherever the stream is cut in two', () => {
  for (let at = 0; at <= STREAM.length; at++) {
    const parser = new SseParser()
    const frames = [...parser.push(STREAM.slice(0, at)), ...parser.push(STREAM.slice(at))]
    assert.deepEqual(frames, FRAMES, `cut at ${at}`)
  }
})

test('frames come out alike character by character', () => {
  const parser = new SseParser()
  assert.deepEqual(
    STREAM.split('').flatMap((character) => parser.push(character)),
    FRAMES,
  )
})

test('half a frame at the end of a stream is no frame', () => {
  assert.deepEqual(new SseParser().push('data: 1\nid: 1\n'), [])
})

test('an event without end is refused before it fills the memory', () => {
  const parser = new SseParser()
  assert.throws(() => {
    for (let i = 0; i < 40; i++) parser.push(`data: ${'x'.repeat(1024 * 1024)}\n`)
  }, /more than 16 MiB/)
})
