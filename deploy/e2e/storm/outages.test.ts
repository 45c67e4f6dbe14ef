// What an outage of ours costs fifty runs that execute meanwhile: nothing but what the fence took, and that has a limit
// of its own. WINDLASS_TEST_REAL_TIME=1 plays it with the settings of the product, in 45 minutes.
import assert from 'node:assert/strict'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { createLog } from '@windlass/shared/log.ts'
import { isFinal, type Run } from '@windlass/shared/model/run.ts'
import { openDatabase, type Database } from '@windlass/coordinator/db/client.ts'
import { type Instance, makeHome, startInstance } from '../_kit/instance.ts'
import { patiently } from '../_kit/responder.ts'
import { deploy, programFiles, wholeLog } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'
import type { Entry, Input } from '../programs/chaos/index.ts'

const RUNS = 50
/** Five minutes against a fence of 50 s are as much as 24 s against one of 4. */
const SCALE = process.env.WINDLASS_TEST_REAL_TIME === '1' ? 12.5 : 1
const SCALED = {
  WINDLASS_HEARTBEAT_MS: '500',
  WINDLASS_FENCE_MS: '4000',
  WINDLASS_LEASE_MS: '6500',
  WINDLASS_AMNESTY_MS: '10000',
  WINDLASS_OFFER_MS: '5000',
  WINDLASS_SWEEP_MS: '300',
}
const SETTINGS = {
  WINDLASS_START_EXAMPLE: 'false',
  WINDLASS_AGENT_SLOTS: String(RUNS),
  ...(SCALE === 1 && SCALED),
}
const OUTAGE_MS = 24_000 * SCALE
/** Longer than a fence, so that it is cut off by each of these outages. */
const LONG_MS = 8_000 * SCALE
const SHORT_MS = 15_000 * SCALE
const SETTLED_MS = 120_000 * SCALE
const TIMEOUT = { timeout: 400_000 * SCALE }
const START_MS = 90_000

const temp = makeHome()
let instance: Instance
let database: Database

before(async () => {
  instance = await startInstance({ home: temp.home, env: SETTINGS })
  const { databaseUrl } = JSON.parse(readFileSync(join(temp.home, 'admin.json'), 'utf8')) as { databaseUrl: string }
  database = openDatabase({ url: databaseUrl, max: 2, log: createLog({}, 'error') })
  const retries = { crash: 0, error: 0 }
  await deploy(instance.client, programFiles('chaos', { slug: 'outages', process: 'fresh', timeout: '2h', retries }))
})
after(async () => {
  try {
    await database?.close()
    await instance?.stop()
  } finally {
    temp.remove()
  }
})

let folders = 0

/**
 * Fifty runs that execute, whatever happens to them then. Answers how they ended. None goes on before the last has
 * started: on a busy machine that takes longer than a run.
 */
async function throughout(takesMs: number, outage: () => Promise<void>): Promise<Run[]> {
  const folder = join(temp.home, `diaries-${++folders}`)
  mkdirSync(folder)
  const gate = join(folder, 'gate')
  const input: Input = { folder, lines: 10, takesMs, gate }
  const { client } = instance
  const triggers = Array.from({ length: RUNS }, () => client.runs.trigger({ workflow: 'outages', input }))
  const ids = (await Promise.all(triggers)).map(({ run }) => run.id)
  const all = () => patiently(() => Promise.all(ids.map(async (run) => (await client.runs.get({ run })).run)))
  await until('all to execute', async () => (await all())?.every(({ status }) => status === 'running'), {
    ms: START_MS,
  })
  writeFileSync(gate, '')
  await outage()
  const runs = await until(
    'the end of all',
    async () => {
      const runs = await all()
      return runs?.every(({ status }) => isFinal(status)) && runs
    },
    { ms: SETTLED_MS, more: () => instance.process.stderr().slice(-3000) },
  )
  for (const run of runs) await endsOnce(run, folder)
  return runs
}

async function endsOnce(run: Run, folder: string): Promise<void> {
  assert.deepEqual([run.id, run.status, run.error], [run.id, 'completed', null])
  const events = await wholeLog(instance.client, run.id)
  assert.equal(events.filter(({ type }) => type === 'run.completed').length, 1)
  const lines = readFileSync(join(folder, run.id), 'utf8').trimEnd().split('\n')
  const diary = lines.map((line) => JSON.parse(line) as Entry)
  assert.deepEqual(
    diary.flatMap(({ living }) => living),
    [],
    `${run.id}: two attempts at work`,
  )
  assert.equal(diary.filter(({ what, attempt }) => what === 'end' && attempt === run.attempt).length, 1)
  const [counted] = await database.db`select crashes, thrown, fences from runs where id = ${run.id}`
  assert.deepEqual({ ...counted }, { crashes: 0, thrown: 0, fences: run.attempt - 1 }, run.id)
  const losses =
    await database.db`select what from run_losses where run_id = ${run.id} and what not in ('network', 'unknown')`
  assert.deepEqual([...losses], [])
}

const lost = (runs: readonly Run[]) => runs.reduce((sum, run) => sum + run.attempt - 1, 0)

async function lossesOf(runs: readonly Run[]): Promise<string> {
  const rows = await database.db<{ what: string; attempt: number; reason: string; count: number }[]>`
    select what, attempt, reason, count(*)::int as count
    from run_losses
    where run_id = any(${runs.map(({ id }) => id)})
    group by what, attempt, reason
    order by attempt, what`
  const lines = rows.map(({ what, attempt, reason, count }) => `${count} of attempt ${attempt}: ${what}, ${reason}`)
  return `${lost(runs)} attempts lost. ${lines.join('; ')}`
}

/** How often it was found so far that leases could not be renewed for a while. */
async function gapsSoFar(): Promise<number> {
  const [{ gaps }] = await database.db<[{ gaps: number }]>`select gaps from pulse`
  return gaps
}

/** Stopped as well, it starts no other one in place of what is away. */
const supervisor = () => instance.process.pid

async function pidOf(part: 'coordinator' | 'postgres'): Promise<number> {
  return until(`a ${part}`, () => instance.pidOf(part), { ms: 60_000 })
}

/** The same as a database whose clock is set by so much: everything that is compared with it lies elsewhere. */
async function setClock(byMs: number): Promise<void> {
  const by = database.db`${-byMs} * interval '1 millisecond'`
  await database.db.begin(async (tx) => {
    await tx`update pulse set at = at + ${by}, gap_at = gap_at + ${by}, series_at = series_at + ${by}`
    await tx`
      update placements
      set lease_expires_at = lease_expires_at + ${by}, renewed_at = renewed_at + ${by},
          accepted_at = accepted_at + ${by}, offered_at = offered_at + ${by}
      where run_id in (select run_id from placements order by run_id for update)`
  })
}

for (const [byMs, what] of [
  [120_000, 'ahead'],
  [-120_000, 'behind'],
] as const)
  test(`a clock of the database that jumps two minutes ${what} costs nothing`, TIMEOUT, async (t) => {
    const runs = await throughout(SHORT_MS, async () => {
      await setClock(byMs)
      const [{ gaps }] = await until('the gap to be found', async () => {
        const rows = await database.db<
          [{ gaps: number }]
        >`select gaps from pulse where gap_at > now() - interval '1 min'`
        return rows.length > 0 && rows
      })
      assert.ok(gaps > 0)
    })
    const fenced = await database.db`
      select run_id from run_losses where run_id = any(${runs.map(({ id }) => id)}) and what = 'network'`
    t.diagnostic(`${lost(runs)} attempts lost, of ${fenced.length} fenced`)
    assert.equal(lost(runs), fenced.length, 'whose agent never fenced goes on as it was')
  })

test('a coordinator that is stopped for six fences, and goes on', TIMEOUT, async (t) => {
  const before = await gapsSoFar()
  const runs = await throughout(LONG_MS, async () => {
    const all = [supervisor(), await pidOf('coordinator')]
    for (const pid of all) process.kill(pid, 'SIGSTOP')
    await wait(OUTAGE_MS)
    for (const pid of all) process.kill(pid, 'SIGCONT')
  })
  assert.ok((await gapsSoFar()) > before)
  t.diagnostic(await lossesOf(runs))
})

for (const part of ['coordinator', 'postgres'] as const)
  test(`a ${part} that is killed, and the next one comes after six fences`, TIMEOUT, async (t) => {
    const before = await gapsSoFar()
    const runs = await throughout(LONG_MS, async () => {
      const pid = await pidOf(part)
      process.kill(supervisor(), 'SIGSTOP')
      process.kill(pid, 'SIGKILL')
      await wait(OUTAGE_MS)
      process.kill(supervisor(), 'SIGCONT')
      await until('the next one', async () => {
        const next = await instance.pidOf(part)
        return next !== undefined && next !== pid
      })
    })
    assert.ok((await gapsSoFar()) > before)
    t.diagnostic(await lossesOf(runs))
  })

test('a coordinator that is killed, and its next one as well', TIMEOUT, async (t) => {
  const runs = await throughout(SHORT_MS, async () => {
    for (let i = 0; i < 2; i++) {
      const pid = await pidOf('coordinator')
      process.kill(pid, 'SIGKILL')
      await until('the next one', async () => {
        const next = await instance.pidOf('coordinator')
        return next !== undefined && next !== pid
      })
    }
  })
  t.diagnostic(await lossesOf(runs))
})

test('a database that stands still for six fences', TIMEOUT, async (t) => {
  const pid = await pidOf('postgres')
  const backends = () => readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number)
  const before = await gapsSoFar()
  const runs = await throughout(LONG_MS, async () => {
    const all = [pid, ...backends()]
    for (const each of all) signal(each, 'SIGSTOP')
    await wait(OUTAGE_MS)
    for (const each of all) signal(each, 'SIGCONT')
  })
  assert.ok((await gapsSoFar()) > before)
  t.diagnostic(await lossesOf(runs))
})

test('a database that is restarted ten times', TIMEOUT, async (t) => {
  const runs = await throughout(SHORT_MS, async () => {
    for (let i = 0; i < 10; i++) {
      const pid = await pidOf('postgres')
      process.kill(pid, 'SIGKILL')
      await until('the next one', async () => {
        const next = await instance.pidOf('postgres')
        return next !== undefined && next !== pid
      })
      await wait(500)
    }
  })
  t.diagnostic(await lossesOf(runs))
})

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
