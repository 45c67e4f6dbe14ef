import assert from 'node:assert/strict'
import { test } from 'node:test'
import { examine, fail, ok, warn } from '../../doctor/finding.ts'
import type { Finding } from '../../doctor/finding.ts'

const never = new AbortController().signal

test('what comes after something that failed is not asked, and neither is what comes after that', async () => {
  let asked = 0
  const findings = await examine(
    [
      { check: 'dns', ask: () => fail('no such name', 'spell it right') },
      { check: 'tcp', after: 'dns', ask: () => (asked++, ok('fine')) },
      { check: 'tls', after: 'tcp', ask: () => (asked++, ok('fine')) },
      { check: 'disk', ask: () => warn('little', 'more') },
    ],
    never,
  )
  assert.deepEqual(
    findings.map(({ check, verdict }) => [check, verdict]),
    [
      ['dns', 'fail'],
      ['tcp', 'skipped'],
      ['tls', 'skipped'],
      ['disk', 'warn'],
    ],
  )
  assert.equal(asked, 0)
})

test('a question that never comes back and one that throws are findings, and the others are asked', async () => {
  const heard: Finding[] = []
  const findings = await examine(
    [
      { check: 'stuck', deadlineMs: 20, ask: () => new Promise(() => undefined) },
      { check: 'broken', ask: () => Promise.reject(new Error('fetch failed', { cause: new Error('reset') })) },
      { check: 'fine', ask: () => ok('fine') },
    ],
    never,
    (finding) => heard.push(finding),
  )
  assert.match(findings[0]?.message ?? '', /no answer within 0.02 s/)
  assert.match(findings[1]?.message ?? '', /reset/)
  assert.equal(findings[2]?.verdict, 'ok')
  assert.deepEqual(heard, findings)
})

test('who stops asking gets the reason thrown', async () => {
  const stopped = new AbortController()
  const asking = examine(
    [{ check: 'stuck', ask: () => new Promise(() => stopped.abort(new Error('enough'))) }],
    stopped.signal,
  )
  await assert.rejects(asking, /enough/)
})
