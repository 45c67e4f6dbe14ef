import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { getPriority } from 'node:os'
import { test, type TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { isGone, untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { startChild } from '../../tools/child.ts'
import { createToolPool, type Outcome, type ToolPoolOptions } from '../../tools/pool.ts'
import type { Wish } from './programs/tool.ts'

const entry = new URL('./programs/tool.ts', import.meta.url)
const isLinux = process.platform === 'linux'
const PATIENT = { wallMs: 60_000, heapMb: 64, most: 1, idleMs: 60_000, mostWaiting: 100 }

function aPool(t: TestContext, options: Partial<ToolPoolOptions<Wish, unknown>> = {}) {
  const pool = createToolPool<Wish, unknown>({ name: 'test', entry, ...PATIENT, ...options })
  t.after(() => pool.close())
  const ask = async (wish: Wish, org = 'org') => answerOf(await pool.run({ org, payload: wish }))
  return { pool, ask }
}

function answerOf(outcome: Outcome<unknown>): unknown {
  if (outcome.kind === 'answer') return outcome.answer
  return 'how' in outcome ? `${outcome.kind} of ${outcome.of}` : `${outcome.kind} by ${outcome.by}`
}

test('there is no process before there is a job, and none when nothing came for a while', async (t) => {
  const { pool, ask } = aPool(t, { idleMs: 10 })
  assert.equal(pool.awake(), 0)
  const ended = moment('tools.ended')
  // An idle process alone must not hold a coordinator up, so something else has to meanwhile.
  const holding = setInterval(() => undefined, 1000)
  t.after(() => clearInterval(holding))
  assert.equal(await ask({ do: 'say', text: 'hello' }), 'hello')
  await ended
  assert.equal(pool.awake(), 0)
  assert.equal(await ask({ do: 'say', text: 'again' }), 'again')
})

test('a process that ran already takes the first job, and ends with the pool', async (t) => {
  const first = await startChild<Wish, unknown>(entry, PATIENT)
  const { pool, ask } = aPool(t, { first })
  assert.equal(pool.awake(), 1)
  assert.equal(await ask({ do: 'say', text: 'hello' }), 'hello')
  assert.equal(pool.awake(), 1)
  await pool.close()
  await first.gone
  assert.equal(pool.awake(), 0)
})

test('jobs that come at once are all answered by as many processes as are allowed', async (t) => {
  const { ask } = aPool(t, { most: 2 })
  const started = new Set<number>()
  t.after(onMoment(({ name, facts }) => void (name === 'tools.started' && started.add(facts.pid))))
  const texts = Array.from({ length: 30 }, (_, n) => String(n))
  const answers = await Promise.all(texts.map((text, n) => ask({ do: 'say', text }, n % 2 ? 'a' : 'b')))
  assert.deepEqual(answers, texts)
  assert.equal(started.size, 2)
})

test('a process knows nothing of the environment of its coordinator and stands in no folder of its own', async (t) => {
  process.env['WINDLASS_TEST_SECRET'] = 'hush'
  const { ask } = aPool(t, { dataMb: 512 })
  const { env, cwd } = (await ask({ do: 'look' })) as { env: string[]; cwd: string }
  assert.deepEqual(
    env.filter((name) => name.startsWith('WINDLASS') || name === 'PATH' || name === 'HOME'),
    [],
  )
  assert.notEqual(cwd, process.cwd())
})

test('a process gives way to coordinator and database', { skip: !isLinux && 'needs /proc' }, async (t) => {
  const { ask } = aPool(t)
  const { pid } = (await ask({ do: 'look' })) as { pid: number }
  assert.equal(getPriority(pid), 5)
  assert.equal(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim(), '500')
})

test('a job that would spin for ever is ended by its processor time, and the next is done', async (t) => {
  const { pool, ask } = aPool(t, { cpuMs: 50 })
  assert.equal(await ask({ do: 'spin' }), 'too slow by cpu')
  assert.equal(pool.awake(), 0)
  assert.equal(await ask({ do: 'say', text: 'next' }), 'next')
})

test('a job that uses no processor time is ended by the clock alone', async (t) => {
  const { ask } = aPool(t, { cpuMs: 200, wallMs: 500 })
  assert.equal(await ask({ do: 'wait', ms: 60_000 }), 'too slow by clock')
})

test('waiting for a busy machine is not the fault of a job', async (t) => {
  const { ask } = aPool(t, { cpuMs: 200 })
  assert.equal(await ask({ do: 'wait', ms: 600 }), 'waited')
})

test('the limit of processor time counts anew from each step of a job', async (t) => {
  const { ask } = aPool(t, { cpuMs: 400 })
  assert.equal(await ask({ do: 'spin in steps', steps: 4, ms: 150 }), 'spun')
  assert.equal(await ask({ do: 'spin in steps', steps: 1, ms: 60_000 }), 'too slow by cpu')
})

test('the first step of a job may have another limit than the others', async (t) => {
  const { pool } = aPool(t, { cpuMs: 100 })
  const payload: Wish = { do: 'spin in steps', steps: 1, ms: 300 }
  const ask = (cpuMs: number) => pool.run({ org: 'a', payload, cpuMs: () => cpuMs })
  assert.equal((await ask(10_000)).kind, 'answer')
  assert.deepEqual(await ask(100), { kind: 'too slow', by: 'cpu', steps: 0 })
})

for (const what of ['objects', 'buffers', 'texts', 'one text'] as const)
  test(`a job that eats memory with ${what} ends its process and nothing else`, async (t) => {
    const { ask } = aPool(t, { heapMb: 128, dataMb: 256 })
    assert.equal(await ask({ do: 'eat', what }), 'died of memory')
    assert.equal(await ask({ do: 'say', text: 'next' }), 'next')
  })

test('a program that throws or ends is told from a job that asks too much', async (t) => {
  const { pool, ask } = aPool(t)
  await assert.rejects(ask({ do: 'throw' }), /thrown for a test/)
  assert.equal(pool.awake(), 0)
  assert.equal(await ask({ do: 'exit' }), 'died of other')
  assert.equal(await ask({ do: 'say', text: 'next' }), 'next')
})

test('a program that cannot be started is an error of ours, each time', async (t) => {
  const log = createLog({ process: 'test' }, 'error')
  const { mock } = t.mock.method(log, 'error', () => {})
  const { pool, ask } = aPool(t, { log, entry: new URL('./programs/none.ts', import.meta.url) })
  for (let n = 0; n < 2; n++)
    await assert.rejects(ask({ do: 'look' }), { code: 'UNAVAILABLE', message: /can be started/ })
  assert.match(String(mock.calls[1]?.arguments[1]?.['error']), /none.ts did not start/)
  assert.equal(pool.awake(), 0)
})

test('the jobs of one org do not keep out those of another', async (t) => {
  const { ask } = aPool(t)
  const order: string[] = []
  const tell = async (text: string, org: string) => order.push((await ask({ do: 'say', text }, org)) as string)
  const jobs = Array.from({ length: 20 }, (_, n) => tell(`a${n}`, 'a'))
  await Promise.all([...jobs, tell('b', 'b')])
  // The first is under way already, and the second was there first.
  assert.ok(order.indexOf('b') <= 2, order.join(' '))
})

test('one org never has the last process, so that another need not wait for the longest of its jobs', async (t) => {
  const { pool, ask } = aPool(t, { most: 2 })
  const endless = Promise.allSettled([1, 2, 3].map(() => ask({ do: 'wait', ms: 600_000 }, 'a')))
  assert.equal(await ask({ do: 'say', text: 'b' }, 'b'), 'b')
  await pool.close()
  await endless
})

test('what one org may have waiting is bounded, and a patient caller is not refused', async (t) => {
  const { pool, ask } = aPool(t, { mostWaiting: 1 })
  const taken = [1, 2].map(() => ask({ do: 'wait', ms: 20 }, 'a'))
  await assert.rejects(ask({ do: 'look' }, 'a'), { code: 'UNAVAILABLE', status: 503, message: /try again/ })
  const others = [ask({ do: 'wait', ms: 20 }, 'b'), pool.run({ org: 'a', payload: { do: 'look' }, isPatient: true })]
  await Promise.all([...taken, ...others])
})

test('a job is made for the process that will do it, which keeps what it was sent', async (t) => {
  const { pool } = aPool(t)
  const known: boolean[] = []
  const payload = (held: Map<string, number>): Wish => {
    known.push(held.has('schema'))
    held.set('schema', 1)
    return { do: 'look' }
  }
  for (let n = 0; n < 2; n++) await pool.run({ org: 'a', payload })
  await pool.run({ org: 'a', payload: { do: 'exit' } })
  await pool.run({ org: 'a', payload })
  assert.deepEqual(known, [false, true, false])
})

test('who closes it in the middle of a job says nothing about the job and leaves no process', async (t) => {
  const { pool, ask } = aPool(t)
  const { pid } = (await ask({ do: 'look' })) as { pid: number }
  const refused = [ask({ do: 'spin' }), ask({ do: 'look' })].map((each) =>
    assert.rejects(each, { code: 'UNAVAILABLE', message: /being stopped/ }),
  )
  await pool.close()
  await Promise.all(refused)
  assert.equal(pool.awake(), 0)
  assert.ok(isGone(pid))
  await assert.rejects(ask({ do: 'look' }), { code: 'UNAVAILABLE' })
})

test('no process outlives a coordinator that is killed in the middle of a job', async (t) => {
  const program = `
    import { createToolPool } from ${JSON.stringify(import.meta.resolve('../../tools/pool.ts'))}
    const entry = new URL(${JSON.stringify(entry.href)})
    const pool = createToolPool({ name: 'test', entry, ...${JSON.stringify({ ...PATIENT, dataMb: 512 })} })
    const { answer } = await pool.run({ org: 'a', payload: { do: 'look' } })
    console.log(answer.pid)
    await pool.run({ org: 'a', payload: { do: 'spin' } })`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
  const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => parent.kill('SIGKILL'))
  const [said] = (await once(parent.stdout, 'data')) as [Buffer]
  const pid = Number(said.toString())
  assert.equal(isGone(pid), false)
  parent.kill('SIGKILL')
  await untilGone('the process of the tool', pid)
})
