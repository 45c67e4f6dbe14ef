import assert from 'node:assert/strict'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { parse } from 'jsonc-parser'
import type { RunContext } from 'windlass'
import { packFolder } from '../../cli/commands/deploy.ts'
import { run as approval } from '../../examples/approval/index.ts'
import { run as countdown } from '../../examples/countdown/index.ts'
import { run as flaky } from '../../examples/flaky/index.ts'
import { run as hello } from '../../examples/hello/index.ts'
import { provideRuntime } from '../../runtime/bridge.ts'
import type { WaitCall } from '../../runtime/waits.ts'

const EXAMPLES = path.resolve(import.meta.dirname, '../../examples')

function aContext(facts: Partial<RunContext> = {}): RunContext {
  const workflow = { slug: 'example', version: 1 }
  return {
    runId: 'run_x',
    attempt: 1,
    org: 'acme',
    workflow,
    environment: null,
    trigger: { kind: 'api' },
    signal: new AbortController().signal,
    ...facts,
  }
}

test('every example packs, and its descriptor is right', async () => {
  const names = await readdir(EXAMPLES)
  assert.deepEqual(names.sort(), ['approval', 'countdown', 'flaky', 'hello', 'lockfile-report'])
  for (const name of names) {
    const { slug, files, warnings } = await packFolder(path.join(EXAMPLES, name))
    assert.equal(slug, name)
    assert.deepEqual(warnings, [])
    const descriptor = files.find((file) => file.path === 'workflow.jsonc')?.content ?? ''
    assert.equal(Descriptor.parse(parse(descriptor)).slug, name)
  }
})

test('hello greets', async () => {
  assert.deepEqual(await hello({ name: 'Ada' }), { greeting: 'Hello, Ada!' })
})

test('countdown counts to the end, or stops when it is cancelled', async () => {
  assert.deepEqual(await countdown({ from: 2, intervalMs: 1 }, aContext()), { counted: 2 })
  const controller = new AbortController()
  const counting = countdown({ from: 1, intervalMs: 60_000 }, aContext({ signal: controller.signal }))
  controller.abort()
  await assert.rejects(counting, { name: 'AbortError' })
})

test('flaky fails until the attempt that it is told', async () => {
  await assert.rejects(flaky({ succeedsOnAttempt: 2, how: 'throw' }, aContext()), /attempt 1 was told to fail/)
  assert.deepEqual(await flaky({ succeedsOnAttempt: 2, how: 'throw' }, aContext({ attempt: 2 })), { attempt: 2 })
})

test('approval pays after a yes, and does not after a no', async (t) => {
  t.after(() => Reflect.deleteProperty(globalThis, Symbol.for('windlass.runtime')))
  const waited: WaitCall[] = []
  const play = (approve: boolean) => {
    const answers = { input: { approve }, sleep: undefined, child: { greeting: 'Hello, Ada!' } }
    const wait = (call: WaitCall) => {
      waited.push(call)
      return Promise.resolve(answers[call.kind])
    }
    const step = (_name: string, act: () => unknown) => Promise.resolve(act())
    provideRuntime({ context: null, emit: () => {}, eventDataBytes: 64 * 1024, waits: () => ({ wait, step }) })
    return approval({ payee: 'Ada', amount: 1200 })
  }
  const { paid, receipt, note } = await play(true)
  assert.deepEqual([paid, note], [true, 'Hello, Ada!'])
  assert.match(receipt ?? '', /^Ada-1200-/)
  assert.deepEqual(
    waited.map(({ kind, name }) => [kind, name]),
    [
      ['input', 'May Ada be paid 12.00 €?'],
      ['sleep', ''],
      ['child', 'hello'],
    ],
  )
  assert.equal((await play(false)).paid, false)
})
