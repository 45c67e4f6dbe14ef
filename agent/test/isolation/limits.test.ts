import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { z } from 'zod'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { limitFiles } from '../../isolation/cgroup.ts'
import { formerCgroups } from '../../isolation/cgroup-folder.ts'
import { createIsolation } from '../../isolation/isolation.ts'
import { NO_LIMITS, PLAIN, planIsolation } from '../../isolation/plan.ts'
import { hostIsolation, ISOLATION_SETTINGS } from '../../isolation/settings.ts'
import { pidsOfUids } from '../../isolation/uids.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_CGROUP, NEEDS_ROOT, ofUsers } from './requirements.ts'
import { aStage } from '../run/programs.ts'

const limited = (limits: Partial<typeof NO_LIMITS>) => ({ ...PLAIN, limits: { ...NO_LIMITS, ...limits } })

async function use(t: TestContext, limits: Partial<typeof NO_LIMITS>, input: object) {
  const stage = await aStage(t, { isolation: limited(limits) })
  return (await stage.play('uses-much.mjs', { inputText: JSON.stringify(input) })).ending
}

test('a run that fills its workspace is ended, and says so', async (t) => {
  const ending = await use(t, { diskMb: 4 }, { what: 'disk', mb: 6 })
  assert.ok(ending.how === 'threw' && ending.error.code === 'WORKSPACE_FULL', JSON.stringify(ending))
  assert.match(ending.error.message, /4 MiB/)
})

test('a single file cannot grow beyond what a run may have', async (t) => {
  const ending = await use(t, { diskMb: 4 }, { what: 'file', mb: 6 })
  assert.ok(ending.how === 'threw' && /EFBIG|4 MiB/.test(ending.error.message), JSON.stringify(ending))
})

test('a run below its limits notices nothing of them', async (t) => {
  const limits = { diskMb: 8, memoryMb: 512, openFiles: 256, processes: 64, cpus: 1 }
  const ending = await use(t, limits, { what: 'file', mb: 2 })
  assert.equal(ending.how, 'returned', JSON.stringify(ending))
})

const NEEDS_PROC = process.platform === 'linux' ? false : 'it needs /proc'

for (const [where, isolation, skip] of [
  ['in a process', PLAIN, NEEDS_PROC],
  ['with users of their own', ofUsers(), NEEDS_ROOT],
  ['in bubblewrap', { ...PLAIN, level: 'bubblewrap' as const }, NEEDS_BUBBLEWRAP],
] as const)
  test(`where memory is short, programs are ended before their agent: ${where}`, { skip }, async (t) => {
    const stage = await aStage(t, { isolation })
    const { ending } = await stage.play('uses-much.mjs', { inputText: '{"what":"nothing"}' })
    assert.ok(ending.how === 'returned' && ending.outputText === '"1000"', JSON.stringify(ending))
  })

test('open files are limited', async (t) => {
  const ending = await use(t, { openFiles: 100 }, { what: 'open files' })
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  const { count, code } = JSON.parse(ending.outputText) as { count: number; code: string }
  assert.ok(count < 100 && code === 'EMFILE', ending.outputText)
})

test('a process cannot take more memory than a run may have', async (t) => {
  const ending = await use(t, { memoryMb: 64 }, { what: 'memory', mb: 1024 })
  assert.notEqual(ending.how, 'returned', JSON.stringify(ending))
})

test('what needs too much memory in its cgroup is killed, and the run says why', { skip: NEEDS_CGROUP }, async (t) => {
  const ending = await use(t, { memoryMb: 128 }, { what: 'memory', mb: 1024 })
  assert.ok(ending.how === 'killed' && /memory/.test(ending.reason ?? ''), JSON.stringify(ending))
})

for (const cgroup of ['auto', 'off']) {
  const name = `of a run that forks without end nothing is left, its user's processes being counted; cgroups ${cgroup}`
  test(name, { skip: NEEDS_ROOT }, async (t) => {
    const isolation = ofUsers({ limits: { ...NO_LIMITS, processes: 24 }, cgroup })
    const stage = await aStage(t, { isolation })
    const said = Promise.withResolvers<void>()
    const start = await stage.start('uses-much.mjs', { inputText: '{"what":"processes"}' })
    const program = stage.processes.run(start, () => said.resolve())
    await said.promise
    const living = () => pidsOfUids(isolation.uids).length
    await untilPolled('there are many', () => living() > 20)
    assert.ok(living() <= 24 + 16, `${living()} processes`)
    program.kill('fenced')
    await program.done
    assert.equal(living(), 0)
    assert.equal(stage.processes.stats().survivors, 0)
  })
}

test('limits become what the kernel reads, as far as it has the controllers', () => {
  const limits = { memoryMb: 256, cpus: 0.5, processes: 64, openFiles: 100, diskMb: 10 }
  assert.deepEqual(limitFiles(['memory', 'cpu', 'pids'], limits), [
    ['memory.max', '268435456'],
    ['memory.swap.max', '0'],
    ['memory.oom.group', '1'],
    ['cpu.max', '50000 100000'],
    ['pids.max', '80'],
  ])
  assert.deepEqual(limitFiles(['cpu'], limits), [['cpu.max', '50000 100000']])
  assert.deepEqual(limitFiles(['memory', 'cpu', 'pids'], NO_LIMITS), [])
})

/** Where an agent would make its groups: files like those of a cgroup, which keep the last that is written to them. */
function aCgroupFolder(t: TestContext) {
  const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-limits-'))
  t.after(() => rmSync(home, { recursive: true }))
  const given = path.join(home, 'cgroup')
  mkdirSync(given)
  const fill = (folder: string, controllers: string) => {
    mkdirSync(folder, { recursive: true })
    for (const name of ['cgroup.controllers', 'cgroup.subtree_control'])
      writeFileSync(path.join(folder, name), controllers)
    writeFileSync(path.join(folder, 'cgroup.procs'), '')
  }
  fill(given, 'cpu memory pids')
  const [runs] = formerCgroups(home, given)
  assert.ok(runs)
  fill(runs, 'memory pids')
  return { home, given, runs }
}

const ADOPTED = {
  uid: undefined,
  key: '',
  effective: { level: 'process', user: 'agent', cgroup: true, network: 'host' },
} as const

test('a program that is taken back has its limits again, which it may have lost with its agent', async (t) => {
  const { home, given, runs } = aCgroupFolder(t)
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const isolation = await createIsolation({ ...options, host: { ...PLAIN, cgroup: given }, log: assert.fail })
  const cgroup = path.join(runs, 'one')
  mkdirSync(cgroup)
  const limits = { ...NO_LIMITS, memoryMb: 256, cpus: 1, processes: 64 }
  assert.equal(isolation.adopt({ ...ADOPTED, cgroup, limits }).folder, cgroup)
  const inForce = readdirSync(cgroup).map((name) => [name, readFileSync(path.join(cgroup, name), 'utf8')])
  assert.deepEqual(Object.fromEntries(inForce), {
    'memory.max': '268435456',
    'memory.oom.group': '1',
    'pids.max': '80',
  })
  // It has ended meanwhile: nothing is to be limited, and nothing said.
  isolation.adopt({ ...ADOPTED, cgroup: path.join(runs, 'gone'), limits })
  assert.deepEqual(readdirSync(runs).includes('gone'), false)
})

test('one that cannot be limited again goes on, and the log says so', async (t) => {
  const { home, given, runs } = aCgroupFolder(t)
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const said: string[] = []
  const log = (name: string, facts: Record<string, unknown> = {}) => said.push(`${name}: ${String(facts['warning'])}`)
  const isolation = await createIsolation({ ...options, host: { ...PLAIN, cgroup: given }, log })
  const cgroup = path.join(runs, 'one')
  mkdirSync(path.join(cgroup, 'pids.max'), { recursive: true })
  isolation.adopt({ ...ADOPTED, cgroup, limits: { ...NO_LIMITS, processes: 64 } })
  assert.match(said.join(), /^isolation\.weak: .*without limits.*pids\.max/)
})

test('of limits the lower one counts, and of isolations the stricter one', () => {
  const host = limited({ memoryMb: 512, processes: 100 })
  const limits = { ...NO_LIMITS, memoryMb: 1024, processes: 50, cpus: 2 }
  const plan = planIsolation(host, { isolation: 'bubblewrap', network: 'none', limits })
  assert.deepEqual([plan.level, plan.network], ['bubblewrap', 'none'])
  assert.deepEqual(plan.limits, { ...NO_LIMITS, memoryMb: 512, processes: 50, cpus: 2 })
  const weaker = planIsolation({ ...host, level: 'bubblewrap' }, { isolation: 'process', network: 'host', limits })
  assert.equal(weaker.level, 'bubblewrap')
})

test('a range of users is taken as it is written, or refused by its name', () => {
  const read = (range: string) =>
    hostIsolation(z.object(ISOLATION_SETTINGS).parse({ WINDLASS_AGENT_RUN_UIDS: range })).uids
  assert.deepEqual(read('700000-700999'), { first: 700000, last: 700999 })
  for (const wrong of ['0-10', '700', '9-3', '60000-70000', 'all', '700000-'])
    assert.throws(() => read(wrong), /WINDLASS_AGENT_RUN_UIDS/)
})
