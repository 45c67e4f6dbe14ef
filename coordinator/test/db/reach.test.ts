import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { openLanes } from '../../db/lanes.ts'
import { createReach, openReach } from '../../db/reach.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { aWay } from '../_kit/way.ts'

const failure = (code: string) => Object.assign(new Error(code), { code })
const SILENT = failure('ETIMEDOUT')
const REFUSED = failure('ECONNREFUSED')
const ofServer = (code: string) => Object.assign(failure(code), { severity: 'FATAL' })

function aReach() {
  const at = { ms: 0 }
  const lines: string[] = []
  let outcome: Error | undefined
  /** What those hear who use other connections; they wait where it is undefined. */
  let others: 'answer' | Error | undefined
  const reach = createReach({
    log: createLog({}, 'info', { write: (line) => lines.push((JSON.parse(line) as { name: string }).name) }),
    look: () => (outcome ? Promise.reject(outcome) : Promise.resolve()),
    ask: () => {
      if (others instanceof Error) return Promise.reject(others)
      return others ? Promise.resolve() : new Promise(() => {})
    },
    wanted: 34,
    now: () => at.ms,
  })
  return {
    reach,
    lines,
    othersHear: (what: typeof others) => (others = what),
    /** A look that is begun now and has its outcome so much later. */
    looks: async (result: Error | undefined, atMs: number, takesMs = 0) => {
      outcome = result
      at.ms = atMs
      const looked = reach.lookOnce()
      at.ms += takesMs
      await looked
      try {
        reach.assert()
        return 'reached'
      } catch (error) {
        return (error as { code: string }).code
      }
    },
  }
}

test('the database is away when two looks have heard nothing for more than two seconds, until one does', async () => {
  const { looks, lines } = aReach()
  assert.equal(await looks(undefined, 0), 'reached')
  assert.equal(await looks(SILENT, 1000, 1000), 'reached')
  assert.equal(await looks(SILENT, 2250, 1000), 'reached')
  assert.equal(await looks(SILENT, 3500, 1000), 'UNAVAILABLE')
  assert.equal(await looks(SILENT, 4750, 1000), 'UNAVAILABLE')
  assert.equal(await looks(undefined, 6000), 'reached')
  // Counted anew.
  assert.equal(await looks(SILENT, 9000, 1900), 'reached')
  assert.deepEqual(lines, ['database.away', 'database.heard'])
})

test('one look that hears nothing says nothing, however long it or the one before took', async () => {
  const { looks } = aReach()
  assert.equal(await looks(SILENT, 60_000, 60_000), 'reached')
  assert.equal(await looks(undefined, 130_000), 'reached')
  assert.equal(await looks(SILENT, 180_000), 'reached')
})

test('a process that stood still between two looks has heard nothing for no longer than they took', async () => {
  const { looks } = aReach()
  assert.equal(await looks(failure('ENETUNREACH'), 0), 'reached')
  assert.equal(await looks(failure('ENETUNREACH'), 60_000), 'reached')
})

test('looks that fail at once add up to silence', async () => {
  const { looks } = aReach()
  const heard = []
  for (let n = 0; n < 9; n++) heard.push(await looks(failure('EHOSTUNREACH'), n * 250))
  assert.deepEqual(heard, [...Array(8).fill('reached'), 'UNAVAILABLE'])
})

test('whatever refuses is not away: a server that starts, or has no sessions, a pooler, a closed port', async () => {
  for (const error of [
    ...['57P03', '57P01', '53300', '08P01', '28P01', '57014', '25006'].map(ofServer),
    ...['ECONNREFUSED', 'ECONNRESET', 'CONNECTION_CLOSED', 'ENOENT', 'ENOTFOUND'].map(failure),
  ]) {
    const { looks } = aReach()
    for (let n = 0; n < 20; n++) assert.equal(await looks(error, n * 5000, 3000), 'reached', error.message)
    await looks(SILENT, 200_000, 3000)
    assert.equal(await looks(SILENT, 204_000, 3000), 'UNAVAILABLE')
    assert.equal(await looks(error, 208_000), 'reached', error.message)
  }
})

test('nothing is away while those who use other connections are answered, or refused', async () => {
  for (const heard of ['answer', REFUSED, ofServer('53300')] as const) {
    const { looks, othersHear } = aReach()
    othersHear(heard)
    for (let n = 0; n < 20; n++) assert.equal(await looks(SILENT, n * 5000, 4000), 'reached')
    othersHear(SILENT)
    for (let n = 20; n < 22; n++) await looks(SILENT, n * 5000, 4000)
    assert.equal(await looks(SILENT, 120_000, 4000), 'UNAVAILABLE')
    // They find it first.
    othersHear(heard)
    await looks(SILENT, 125_000, 4000)
    assert.equal(await looks(SILENT, 130_000, 4000), 'reached')
  }
})

test('one that is alone without an answer again and again is said to lack a session, once', async () => {
  const { looks, lines, othersHear } = aReach()
  const fewAfter = async (count: number, from: number) => {
    for (let n = 0; n < count; n++) await looks(SILENT, from + n * 5000, 4000)
    return lines.filter((name) => name === 'database.connections.few').length
  }
  othersHear(REFUSED)
  assert.equal(await fewAfter(5, 0), 0)
  othersHear('answer')
  assert.equal(await fewAfter(2, 100_000), 0)
  assert.equal(await fewAfter(5, 200_000), 1)
  await looks(undefined, 300_000)
  assert.equal(await fewAfter(2, 400_000), 1)
  assert.equal(await fewAfter(5, 500_000), 2)
})

test('those who wait are told once, also who comes late', async () => {
  const { reach, looks } = aReach()
  const calls: string[] = []
  reach.onAway(() => calls.push('waits'))
  reach.onAway(() => calls.push('has stopped'))()
  await looks(SILENT, 0, 3000)
  assert.equal(calls.length, 0)
  await looks(SILENT, 4000, 3000)
  reach.onAway(() => calls.push('comes late'))
  await looks(SILENT, 8000, 3000)
  await untilPolled('all are told', () => calls.length === 2)
  assert.deepEqual(calls, ['waits', 'comes late'])
})

test('of many who wait a few are told at once, and none any more when the database is heard', async () => {
  const { reach, looks } = aReach()
  const calls: number[] = []
  for (let n = 0; n < 2000; n++) reach.onAway(() => calls.push(n))
  await looks(SILENT, 0, 3000)
  await looks(SILENT, 4000, 3000)
  assert.equal(calls.length, 40)
  await looks(undefined, 8000)
  const before = calls.length
  await untilPolled('the others are told', async () => {
    await looks(SILENT, 9000, 3000)
    await looks(SILENT, 13_000, 3000)
    return calls.length > before
  })
  assert.equal(before, 40)
  assert.deepEqual(
    calls,
    [...calls].sort((a, b) => a - b),
  )
})

test('a pooler that lets new sessions wait is not away while it serves those that it has', async (t) => {
  const database = await testDatabase()
  const way = await aWay(database.url)
  const beats = openLanes(1, { url: way.url, log })
  const reach = openReach({ url: way.url, log, beats, wanted: 34, connectTimeoutS: 1 })
  const stopping = new AbortController()
  const seen: boolean[] = []
  const stopSeeing = onMoment((moment) => moment.name === 'database.looked' && seen.push(moment.facts.isAway))
  t.after(async () => {
    stopping.abort()
    stopSeeing()
    await Promise.all([reach.close(), beats.close()])
    way.close()
    await database.close()
  })
  await beats.run((lane) => lane`select 1`)
  const running = reach.run(stopping.signal)
  await until('a look', () => seen.length > 0)
  way.holdNew()
  await beats.run(
    (lane) => lane`
    select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and query = 'select 1'`,
  )
  // The connection is lost, and each new one is given up after its time: that is several times as long as away takes.
  const before = seen.length
  await until('some looks', () => seen.length > before + 4)
  assert.ok(!seen.includes(true))
  stopping.abort()
  await running
})
