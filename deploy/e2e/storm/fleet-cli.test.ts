// What a person does to the fleet at a terminal, against a real coordinator. The machines speak the protocol by hand here, so that
// a test says what they do and when.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { after, before, test } from 'node:test'
import type { TestContext } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aRunningAgent, anAgent, end } from '../../../coordinator/test/_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf } from '../../../coordinator/test/_kit/coordinator.ts'
import type { TestCoordinator } from '../../../coordinator/test/_kit/coordinator.ts'
import { aWorkflow } from '../../../coordinator/test/_kit/workflow.ts'
import { goingCli, runCli } from '../../../sdk/test/_kit/run-cli.ts'
import type { Ended, Going } from '../../../sdk/test/_kit/run-cli.ts'

let c: TestCoordinator
const service = () => ({
  env: { WINDLASS_URL: c.url, WINDLASS_API_KEY: c.apiKey, WINDLASS_ORG: c.org },
})
const windlass = (...args: string[]): Promise<Ended> => runCli(args, service())
const going = (t: TestContext, ...args: string[]): Going => goingCli(t, args, service())

before(async () => {
  c = await aCoordinatorOfItsOwn({ SWEEP_MS: 100 })
})
after(() => c.stop())

let pools = 0

/** A machine in a pool of its own that executes one run. */
async function aBusyMachine(t: TestContext, name: string) {
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: `pool-${++pools}` })
  const { slug } = await aWorkflow(c, { descriptor: { pool: runnerPool.name } })
  const run = await aRun(c, { workflow: slug })
  const held = await aRunningAgent(c, { name, pool: runnerPool.id })
  t.after(() => held.agent.close())
  return { ...held, run }
}

test('a pool is made, changed, looked at, asked for its demand and deleted', async () => {
  const made = await windlass('pools', 'create', 'builders', '--memory', '2g', '--labels', 'eu,ssd', '--slots', '3')
  assert.equal(made.code, 0, made.stderr)
  const changed = await windlass('pools', 'update', 'builders', '--isolation', 'bubblewrap', '--reset', 'memory')
  assert.equal(changed.code, 0, changed.stderr)
  const { stdout } = await windlass('pools', 'get', 'builders')
  for (const line of [/^isolation +bubblewrap$/m, /^memory +-$/m, /^labels +eu, ssd$/m, /^slots +3$/m])
    assert.match(stdout, line)
  const wrong = await windlass('pools', 'update', 'builders', '--isolation', 'process', '--network', 'none')
  assert.equal(wrong.code, 2)
  assert.match(wrong.stderr, /network/)
  const small = await windlass('pools', 'update', 'builders', '--memory', '1m')
  assert.match(small.stderr, /memoryMb/)
  assert.match((await windlass('pools', 'demand', 'builders')).stdout, /^queued +0 runs$/m)
  assert.match((await windlass('pools', 'list')).stdout, /^builders\tpool_/m)
  assert.equal((await windlass('pools', 'delete', 'builders')).stdout, 'builders is deleted\n')
  assert.equal((await windlass('pools', 'get', 'builders')).code, 4)
})

test('drain --wait shows what is left and ends with 0 once the last run has ended', async (t) => {
  const { link, offer, run } = await aBusyMachine(t, 'east-1')
  const planned = await windlass('runners', 'drain', 'east-1', '--plan')
  assert.match(planned.stdout, new RegExp(`^${run.id}\t`))
  assert.match((await windlass('runners', 'get', 'east-1')).stdout, /^intake +open/m)
  const waiting = going(t, 'runners', 'drain', 'east-1', '--wait', '--reason', 'kernel')
  await waiting.says(new RegExp(`east-1: 1 executing, 0 parked, 0 offered left, .* to the deadline; oldest ${run.id}`))
  assert.match((await windlass('runners', 'list')).stdout, /\teast-1\tpool-\d+\tdraining\t1\/4\t/)
  await link.report(offer, 2, end({ how: 'returned', outputText: '1' }))
  await waiting.prints(/east-1 is drained \(epoch \d+\)/)
  const again = await windlass('runners', 'drain', 'east-1', '--wait', '--reason', 'kernel')
  assert.equal(again.code, 0, again.stderr)
  assert.match((await windlass('runners', 'resume', 'east-1')).stdout, /^east-1 takes work/)
})

test('drain --wait ends with 124 when the deadline finds a run, which is left alone', async (t) => {
  const { run, offer, link } = await aBusyMachine(t, 'east-2')
  const { code, stderr } = await windlass('runners', 'drain', 'east-2', '--wait', '--deadline', '1s')
  assert.equal(code, 124, stderr)
  assert.match(stderr, /not drained: 1 executing.*windlass runners plan rnr_/s)
  assert.equal((await runOf(c, run.id)).status, 'running')
  await link.report(offer, 2, end({ how: 'returned', outputText: '1' }))
})

test('with --on-deadline cancel it waits for what is cancelled then, and ends with 0', async (t) => {
  const { run, offer, link } = await aBusyMachine(t, 'east-3')
  const waiting = going(t, 'runners', 'drain', 'east-3', '--wait', '--deadline', '1s', '--on-deadline', 'cancel')
  const { runs } = await link.next('cancel')
  assert.match(runs[0]?.reason ?? '', /drain/)
  await link.report(offer, 2, end({ how: 'cancelled', forced: false }))
  await waiting.prints(/east-3 is drained/)
  assert.equal((await runOf(c, run.id)).status, 'cancelled')
})

test('a coordinator that is away for a while is waited for', async (t) => {
  const { link, offer } = await aBusyMachine(t, 'east-7')
  const way = await aWay(t)
  const waiting = goingCli(t, ['runners', 'drain', 'east-7', '--wait'], {
    env: { ...service().env, WINDLASS_URL: way.url },
  })
  await waiting.says(/1 executing/)
  await way.close()
  await waiting.says(/the coordinator does not answer, asking again/)
  await link.report(offer, 2, end({ how: 'returned', outputText: '1' }))
  await way.open()
  await waiting.prints(/east-7 is drained/)
})

/** A way to the coordinator that can be closed, and opened again at the same address. */
async function aWay(t: TestContext) {
  const sockets = new Set<Socket>()
  const server = createServer((socket) => {
    const there = connect(Number(new URL(c.url).port), '127.0.0.1')
    for (const each of [socket, there]) sockets.add(each.on('error', () => each.destroy()))
    socket.pipe(there).pipe(socket)
  })
  let port = 0
  const open = async () => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }
  const close = async () => {
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
  await open()
  t.after(() => (server.listening ? close() : undefined))
  return { url: `http://127.0.0.1:${port}`, open, close }
}

test('who resumes the machine meanwhile ends the waiting with 6', async (t) => {
  const { agent } = await aBusyMachine(t, 'east-4')
  const waiting = going(t, 'runners', 'drain', 'east-4', '--wait')
  await waiting.says(/1 executing/)
  await c.call(ops.runners.resume, { runner: agent.id, reason: 'needed' })
  await waiting.says(/it was resumed by .*: needed/)
  const stale = await windlass('runners', 'drain', 'east-4', '--epoch', '0')
  assert.equal(stale.code, 1)
  assert.match(stale.stderr, /epoch/)
})

test('revoke and deregister, and a machine that is busy is not forgotten without force', async (t) => {
  const { agent } = await aBusyMachine(t, 'east-5')
  const busy = await windlass('runners', 'deregister', 'east-5')
  assert.equal(busy.code, 1)
  assert.match(busy.stderr, /Next: windlass runners drain/)
  assert.match((await windlass('runners', 'revoke', 'east-5', '--reason', 'stolen')).stdout, /^east-5 is revoked/)
  assert.match(
    (await windlass('runners', 'list')).stdout,
    new RegExp(`^${agent.id}\teast-5\tpool-\\d+\trevoked\t`, 'm'),
  )
  assert.equal((await windlass('runners', 'cordon', 'east-5')).code, 1)
  const idle = await anAgent(c, { name: 'east-6' })
  assert.equal((await windlass('runners', 'deregister', idle.id, '--force')).stdout, `${idle.id} is forgotten\n`)
  assert.equal((await windlass('runners', 'get', 'east-6')).code, 4)
})
