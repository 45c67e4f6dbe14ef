import assert from 'node:assert/strict'
import { test } from 'node:test'
import { keepLeftLines } from '../../run/left-lines.ts'
import { createLineSplitter } from '../../run/lines.ts'

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
