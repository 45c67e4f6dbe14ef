import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import test from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { keepSpares } from '../../../run/hosts/spares.ts'
import { aStage, type Stage } from '../programs.ts'

const ready = (stage: Stage) => until('a spare is ready', () => stage.processes.stats().spares.ready === 1)

/** Our children that wait as spares. */
function sparePids(): number[] {
  const isSpare = (pid: string) => {
    const [stat, line] = [`/proc/${pid}/stat`, `/proc/${pid}/cmdline`].map(text)
    return line?.endsWith('\0spare\0') && stat?.slice(stat.lastIndexOf(')') + 2).split(' ')[1] === String(process.pid)
  }
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name) && isSpare(name))
    .map(Number)
}

function text(file: string): string {
  try {
    return readFileSync(file, 'latin1')
  } catch {
    // It has ended since the folder was listed.
    return ''
  }
}

test('a spare serves one run and is replaced', async (t) => {
  const stage = await aStage(t, { spares: 1 })
  await ready(stage)
  const [spare] = sparePids()
  const { ending } = await stage.play('takes-time.mjs', { inputText: '{"ms":1}' })
  assert.deepEqual(ending, { how: 'returned', outputText: String(spare) })
  await ready(stage)
  assert.notEqual(sparePids()[0], spare)
})

test('a spare that dies is replaced', async (t) => {
  const stage = await aStage(t, { spares: 1 })
  await ready(stage)
  process.kill(sparePids()[0] ?? 0, 'SIGKILL')
  await until('its death is seen', () => stage.processes.stats().spares.ready === 0)
  assert.equal((await stage.play('tells-in-order.mjs')).ending.how, 'returned')
  await ready(stage)
})

test('no spare is booted while runs need the cores', async (t) => {
  const stage = await aStage(t, { spares: 1, cores: 1 })
  await ready(stage)
  const said = Promise.withResolvers<void>()
  const busy = stage.processes.run(await stage.start('never-ends.mjs'), () => said.resolve())
  await said.promise
  assert.equal((await stage.play('tells-in-order.mjs')).ending.how, 'returned')
  assert.deepEqual(stage.processes.stats().spares, { ready: 0, booting: 0 })
  busy.kill('shutdown')
  await ready(stage)
})

test('a program sees its own variables and folders, and nothing of its host', async (t) => {
  process.env.AGENT_SECRET = 'not for programs'
  t.after(() => delete process.env.AGENT_SECRET)
  for (const spares of [0, 1]) {
    const stage = await aStage(t, { spares })
    if (spares === 1) await ready(stage)
    const { ending } = await stage.play('shows-surroundings.mjs', { variables: { GREETING: 'hello' } })
    assert.ok(ending.how === 'returned', JSON.stringify(ending))
    const seen = JSON.parse(ending.outputText)
    const allowed = ['GREETING', 'HOME', 'LANG', 'LC_ALL', 'PATH', 'TMPDIR', 'TZ', 'WINDLASS_PROCESS']
    assert.deepEqual(
      Object.keys(seen.env).filter((name) => !allowed.includes(name)),
      [],
    )
    assert.deepEqual(
      seen.initialNames.filter((name: string) => !allowed.includes(name)),
      [],
    )
    assert.equal(seen.initialNames.includes('GREETING'), false)
    assert.deepEqual([seen.home, seen.temporary], [seen.cwd, `${seen.cwd}/tmp`])
    assert.equal(seen.mode, 0o700)
    assert.equal(seen.childSees, 'hello')
  }
})

// With all user ids in use, the throw out of a timer ended the whole agent.
test('a spare that cannot be started is tried again, later each time', (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const failures: unknown[] = []
  const spares = keepSpares({
    target: 2,
    start: () => {
      throw new Error('all user ids are in use')
    },
    discard: () => assert.fail('there is nothing to discard'),
    mayStart: () => true,
    onDeath: () => assert.fail('nothing has lived'),
    onFailure: (error) => failures.push(error),
  })
  spares.refillSoon()
  t.mock.timers.tick(20)
  assert.equal(failures.length, 1)
  t.mock.timers.tick(999)
  assert.equal(failures.length, 1)
  t.mock.timers.tick(1)
  assert.equal(failures.length, 2)
  t.mock.timers.tick(2000)
  assert.equal(failures.length, 3)
  spares.close()
})
