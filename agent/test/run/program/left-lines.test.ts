import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { keepLeftLines } from '../../../run/program/left-lines.ts'
import { createLineSplitter } from '../../../run/program/lines.ts'
import type { Redactor } from '../../../run/redact/redactor.ts'
import { aRedactor } from '../../_kit/a-redactor.ts'

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function someLines(begun = 'a line that', redactor?: Redactor) {
  const [out, err, stdout, stderr] = [1, 2, 3, 4].map(() => createLineSplitter(redactor))
  out!.push(Buffer.from(begun))
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

test('of very long ones fewer are held, and of ended ones none', () => {
  const left = keepLeftLines(100_000)
  for (let n = 0; n < 10; n++) left.put(`run_${n}`, 1, someLines('x'.repeat(10_000)))
  left.put('run_ended', 1, someLines('a whole line\n'))
  assert.equal(left.take('run_ended', 2), undefined)
  assert.equal(left.take('run_4', 2), undefined)
  assert.ok(left.take('run_5', 2))
})

test('what finds the secrets of a process is let go with it', async () => {
  const left = keepLeftLines()
  const streams: WeakRef<object>[] = []
  const put = (run: string, begun: string) => {
    const redactor = aRedactor({ KEY: `secret-of-${run}` })
    const stream = () => {
      const opened = redactor.stream()
      streams.push(new WeakRef(opened))
      return opened
    }
    left.put(run, 1, someLines(begun, { ...redactor, stream }))
  }
  put('run_a', 'nothing begun\n')
  put('run_b', 'a line that')
  put('run_c', 'it is secret-of-r')
  await turn()
  collectGarbage()
  assert.equal(streams.length, 12)
  assert.deepEqual(
    streams.filter((each) => each.deref()),
    [],
  )
})

test('a secret that one process has begun and the next one ends is hidden, and nothing is taken in between', () => {
  const left = keepLeftLines()
  const redactor = () => aRedactor({ KEY: 'secret-of-run_a' })
  left.put('run_a', 1, someLines('it is secret-of-', redactor()))
  const lines = left.take('run_a', 2)!
  assert.deepEqual(lines.out.push(Buffer.from('what comes late\n')), [])
  lines.out.hideWith(redactor())
  assert.deepEqual(lines.out.push(Buffer.from('run_a.\n')), ['it is ***.'])
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
