import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test, { type TestContext } from 'node:test'
import type { RejoinReport } from '@windlass/shared/wire/program.ts'
import { aHost, type Host, opened } from './host-process.ts'

const WAIT_MS = 20_000
const PROCESSES = `process.getBuiltinModule('node:child_process')`

const WORKER = `const { Worker } = process.getBuiltinModule('node:worker_threads')
  const worker = new Worker("require('node:child_process').execFileSync('true')", { eval: true })
  await new Promise((resolve) => worker.once('exit', resolve))`

async function rendezvous(t: TestContext): Promise<string> {
  const folder = await fs.mkdtemp(path.join(os.tmpdir(), 'windlass-rejoin-'))
  t.after(() => fs.rm(folder, { recursive: true, force: true }))
  return folder
}

const logsOf = ({ seen }: Host, from = 0) =>
  seen
    .slice(from)
    .filter(({ name }) => name === 'log')
    .map(({ text }) => (JSON.parse(text) as { text: string }).text)

test('a program whose agent is gone stands still, and tells the next one what that one asks for', async (t) => {
  const host = await aHost(
    t,
    `for (let n = 1; n <= 40; n++) { log('line ' + n); await new Promise((r) => setTimeout(r, 5)) }`,
  )
  const folder = await rendezvous(t)
  host.start({ rejoin: { folder, waitMs: WAIT_MS } })
  while (logsOf(host).length < 3) await host.next('log')
  host.leave()
  const before = host.seen.length
  await host.comeFor(folder)
  const report = JSON.parse(await host.next('rejoin')) as RejoinReport
  assert.equal(report.first, 0)
  assert.equal(report.handsOver, true)
  assert.ok(report.next < 42, 'it stood still')
  host.send({ t: 'resend', from: 2 })
  await host.next('returned')
  const again = Array.from({ length: 39 }, (_, n) => `line ${n + 2}`)
  assert.deepEqual(logsOf(host, before), again, 'frame 0 is its beginning, frame 1 the first line')
})

test('one that waits notices it by itself, and hears what it waited for over the new line', async (t) => {
  const host = await aHost(t, `log('before')\nawait sleep('1h')\nlog('after')\nreturn 'done'`)
  const folder = await rendezvous(t)
  host.start({ rejoin: { folder, waitMs: WAIT_MS } })
  await opened(host)
  await host.parked()
  host.leave()
  await host.comeFor(folder)
  const report = JSON.parse(await host.next('rejoin')) as RejoinReport
  assert.equal(report.heard, 0)
  host.send({ t: 'resend', from: report.next })
  host.send({ t: 'wake', completions: [{ n: 1, state: 'done', result: 'null' }] })
  assert.equal(await host.next('returned'), '"done"')
  assert.deepEqual(logsOf(host), ['before', 'after'])
})

test('it says what it was given, so that the next agent can hide it', async (t) => {
  const host = await aHost(t, `await sleep('1h')`)
  const folder = await rendezvous(t)
  host.start({ rejoin: { folder, waitMs: WAIT_MS }, variables: { TOKEN: 'swordfish' } })
  await host.parked()
  host.leave()
  await host.comeFor(folder)
  const report = JSON.parse(await host.next('rejoin')) as RejoinReport
  assert.deepEqual(report.variables, { TOKEN: 'swordfish' })
})

test('a program that could have started others, and has not, is taken back', async (t) => {
  const host = await aHost(t, `${PROCESSES}\nawait sleep('1h')`)
  const folder = await rendezvous(t)
  host.start({ rejoin: { folder, waitMs: WAIT_MS } })
  await host.parked()
  host.leave()
  await host.comeFor(folder)
  assert.ok(await host.next('rejoin'))
})

test('of much that was said the last quarter of a MiB can be told again', async (t) => {
  const host = await aHost(
    t,
    `for (let n = 0; n < 600; n++) process.stdout.write('x'.repeat(1023) + '\\n')\nawait sleep('1h')`,
  )
  const folder = await rendezvous(t)
  host.start({ rejoin: { folder, waitMs: WAIT_MS } })
  await host.parked()
  host.leave()
  await host.comeFor(folder)
  const { first, next } = JSON.parse(await host.next('rejoin')) as RejoinReport
  assert.ok(next - first > 200 && next - first < 260, `${first} to ${next}`)
})

for (const [what, body, more] of [
  ['that was given nowhere to wait', `await sleep('1h')`, {}],
  ['that has started another', `${PROCESSES}.execFileSync('true')\nawait sleep('1h')`, { waitMs: WAIT_MS }],
  ['whose other process lives', `${PROCESSES}.spawn('sleep', ['1'])\nawait sleep('1h')`, { waitMs: WAIT_MS }],
  ['whose worker thread has started another', `${WORKER}\nawait sleep('1h')`, { waitMs: WAIT_MS }],
  ['for which nobody comes in time', `await sleep('1h')`, { waitMs: 50 }],
] as const)
  test(`a program ${what} ends when its agent is gone`, async (t) => {
    const host = await aHost(t, body)
    const folder = await rendezvous(t)
    host.start('waitMs' in more ? { rejoin: { folder, waitMs: more.waitMs } } : {})
    await host.parked()
    host.leave()
    assert.equal(await host.exited, 1)
  })
