import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepLeftLines } from '../../../run/program/left-lines.ts'
import { createLineSplitter } from '../../../run/program/lines.ts'

function someLines() {
  const [out, err, stdout, stderr] = [1, 2, 3, 4].map(() => createLineSplitter())
  return { out: out!, err: err!, stdout: stdout!, stderr: stderr! }
}

test('lines that were begun are for the next placement alone', () => {
  const left = keepLeftLines()
  const lines = someLines()
  left.put('run_a', 1, lines)
  assert.equal(left.take('run_a', 2), lines)
  assert.equal(left.take('run_a', 2), undefined)
  left.put('run_a', 2, lines)
  // Another agent had the run in between: it has gone on since.
  assert.equal(left.take('run_a', 4), undefined)
})

test('of very many the oldest are forgotten', () => {
  const left = keepLeftLines()
  for (let n = 0; n <= 1000; n++) left.put(`run_${n}`, 1, someLines())
  assert.equal(left.take('run_0', 2), undefined)
  assert.ok(left.take('run_1', 2))
})

test('of a line without an end no more is held than one event has room for', () => {
  const lines = createLineSplitter()
  const chunk = Buffer.alloc(1024 * 1024, 'x')
  let held = 0
  for (let n = 0; n < 20; n++) {
    held += chunk.length - lines.push(chunk).join('').length
    assert.ok(held > 0 && held <= 64 * 1024, `${held} characters`)
  }
  assert.equal(lines.flush().join('').length, held)
})
