import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import test from 'node:test'
import type { TestContext } from 'node:test'
import type { IdleReport } from '@windlass/shared/wire/program.ts'
import { aHost, opened } from './host-process.ts'

test('a process that serves another run says nothing of the one before', async (t) => {
  // A race whose loser is there as well, a step that is being kept, and a short sleep: all of them are left behind.
  const host = await aHost(
    t,
    `if (input.second) {
       // Longer than anything is gathered.
       await new Promise((resolve) => setTimeout(resolve, 1500))
       return 'second'
     }
     void step('left', () => 'behind')
     void sleep(20)
     return await Promise.race([workflows.call('a'), workflows.call('b')])`,
  )
  host.start({ stays: true })
  const numbers = [(await opened(host)).entry.n, (await opened(host)).entry.n]
  host.send({ t: 'wake', completions: numbers.map((n) => ({ n, state: 'done', result: String(n) })) })
  assert.equal(await host.next('returned'), String(numbers[0]))
  await host.next('idle')

  const before = host.seen.length
  host.start({ stays: true, runId: 'run_other', inputText: '{"second":true}' })
  assert.equal(await host.next('returned'), '"second"')
  await host.next('idle')
  assert.deepEqual(
    host.seen.slice(before).map(({ name }) => name),
    ['begun', 'returned', 'idle'],
  )
})

/** What a process says at the end of its second run, of which the first has left something behind. */
async function playTwo(t: TestContext, first: string, second: string) {
  const host = await aHost(t, `if (input.second) {${second}}\n${first}`)
  host.start({ stays: true, runId: 'run_one' })
  await host.next('returned')
  const left = JSON.parse(await host.next('idle')) as IdleReport
  const before = host.seen.length
  host.start({ stays: true, runId: 'run_two', inputText: '{"second":true}' })
  const returned = JSON.parse(await host.next('returned')) as unknown
  const { strays } = JSON.parse(await host.next('idle')) as IdleReport
  const said = host.seen.slice(before).filter(({ name }) => !['begun', 'returned', 'idle'].includes(name))
  return { left: left.leftovers, returned, strays, said: said.map(({ name, text }) => `${name} ${text.trim()}`) }
}

test('what a former run calls is not taken for the run that has the process now', async (t) => {
  const { returned, strays, said } = await playTwo(
    t,
    `const { AsyncResource } = process.getBuiltinModule('node:async_hooks')
     globalThis.late = AsyncResource.bind(() => {
       log('customer alice')
       phase('of one')
       console.log('printed by one')
       const failed = []
       for (const call of [() => step('charge alice', () => 1), () => sleep(1), () => context.runId])
         try { call() } catch (error) { failed.push(error.message.slice(0, 40)) }
       return failed
     })`,
    `log('first word')
     const failed = globalThis.late()
     void step('charge bob', () => 1)
     await new Promise(setImmediate)
     log('last word of ' + context.runId)
     return failed`,
  )
  assert.deepEqual(
    said.filter((text) => !text.startsWith('journal')),
    ['log {"text":"first word"}', 'log {"text":"last word of run_two"}'],
  )
  assert.deepEqual(
    said.filter((text) => text.includes('charge')).map((text) => /charge \w+/.exec(text)?.[0]),
    ['charge bob'],
  )
  assert.equal((returned as string[]).length, 3)
  assert.ok(
    (returned as string[]).every((text) => /outside of a run/.test(text)),
    String(returned),
  )
  assert.deepEqual(strays, ['log of run_one', 'phase of run_one', 'out of run_one', 'a call of run_one'])
})

test('an error in what a former run has left behind does not fail the next one', async (t) => {
  const { returned, strays } = await playTwo(
    t,
    `const { AsyncResource } = process.getBuiltinModule('node:async_hooks')
     globalThis.late = AsyncResource.bind(() => {
       setImmediate(() => { throw new Error('of one') })
       void Promise.reject(new Error('of one'))
     })`,
    `globalThis.late()
     await new Promise((resolve) => setTimeout(resolve, 20))
     return 'second'`,
  )
  assert.equal(returned, 'second')
  assert.deepEqual(strays, ['an error of run_one'])
})

test('a second run that is cancelled speaks for itself, through the line that the first has opened', async (t) => {
  const host = await aHost(
    t,
    `if (!input.second) return await step('opens the line', () => 1)
     context.signal.addEventListener('abort', () => log('tidied'))
     log('waits')
     await sleep('1h')`,
  )
  host.start({ stays: true })
  await host.nextOp()
  host.send({ t: 'kept', count: 1 })
  await host.next('idle')
  host.start({ stays: true, runId: 'run_two', inputText: '{"second":true}' })
  await host.next('log')
  host.send({ t: 'cancel', why: 'cancelled', reason: 'enough', graceMs: 1000 })
  assert.equal(await host.next('log'), '{"text":"tidied"}')
  assert.deepEqual(JSON.parse(await host.next('idle')), { leftovers: [], strays: [] })
})

test('whatever goes on after a run is told, also when it does not keep the process', async (t) => {
  const lines = {
    Timeout: `setInterval(() => {}, 60_000).unref()`,
    Immediate: `(function again() { setImmediate(again).unref() })()`,
    TCP: `const server = process.getBuiltinModule('node:net').createServer().listen(0).unref()
      await new Promise((resolve) => server.ref().once('listening', resolve))
      server.unref()`,
    UDP: `process.getBuiltinModule('node:dgram').createSocket('udp4').bind(0).unref()`,
    StatWatcher: `process.getBuiltinModule('node:fs').watchFile('/', { persistent: false }, () => {})`,
    FSEvent: `process.getBuiltinModule('node:fs').watch('/tmp').unref()`,
    MessagePort: `globalThis.worker = new (process.getBuiltinModule('node:worker_threads').Worker)
      ('setInterval(() => {}, 1000)', { eval: true })
      globalThis.worker.unref()`,
  }
  for (const [name, line] of Object.entries(lines)) {
    const host = await aHost(t, line)
    host.start({ stays: true })
    const { leftovers } = JSON.parse(await host.next('idle')) as IdleReport
    assert.ok(leftovers.includes(`${name} without ref`), `${name}: ${leftovers.join(', ')}`)
  }
})

test('a listener of Node or of ours that was replaced is told', async (t) => {
  for (const event of ['warning', 'uncaughtException']) {
    const host = await aHost(t, `process.removeAllListeners('${event}'); process.on('${event}', () => {})`)
    host.start({ stays: true })
    const { leftovers } = JSON.parse(await host.next('idle')) as IdleReport
    assert.ok(leftovers.includes(`listener for ${event}`), leftovers.join(', '))
  }
})

test('what has ended is no leftover, nor are connections that Node keeps for the next request', async (t) => {
  const server = http.createServer((_request, response) => response.end('hi')).listen(0)
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const host = await aHost(
    t,
    `clearInterval(setInterval(() => {}, 1000).unref())
     setTimeout(() => {}, 1).unref()
     setTimeout(() => {}, 1000).unref().ref().close()
     process.getBuiltinModule('node:dgram').createSocket('udp4').bind(0).unref().close()
     const url = 'http://127.0.0.1:${port}/'
     await (await fetch(url, { signal: AbortSignal.timeout(60_000) })).text()
     await new Promise((resolve) => {
       process.getBuiltinModule('node:http').get(url, (response) => response.resume().on('end', resolve))
     })
     await new Promise((resolve) => setTimeout(resolve, 20))
     await step('one', () => 1)`,
  )
  for (let runs = 1; runs <= 2; runs++) {
    host.start({ stays: true })
    await host.nextOp()
    host.send({ t: 'kept', count: 1 })
    assert.deepEqual(JSON.parse(await host.next('idle')), { leftovers: [], strays: [] })
  }
})

test('settings of the process that a run has changed are put back', async (t) => {
  const look = `[process.umask(), Error.stackTraceLimit, process.title]`
  const change = `process.umask(0o111); Error.stackTraceLimit = 1; process.title = 'of one'`
  const host = await aHost(t, `const found = ${look}; ${change}; return found`)
  const found: string[] = []
  for (let runs = 1; runs <= 2; runs++) {
    host.start({ stays: true })
    found.push(await host.next('returned'))
    await host.next('idle')
  }
  assert.equal(found[1], found[0])
})
