import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Database } from '../../db/client.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'
import { aGate, type Gate } from './gate.ts'
import { aCaller, admitted, type Asked, atOnce, someLimits, type SomeLimits } from './some-limits.ts'

let database: Database

before(async () => {
  database = await testDatabase()
})
after(() => database.close())

async function behindAGate(asked: Asked, use: (limits: SomeLimits, gate: Gate) => Promise<void>): Promise<void> {
  const gate = await aGate(database.url)
  const limits = someLimits(gate.url, asked)
  try {
    await use(limits, gate)
  } finally {
    await gate.open()
    await limits.close()
    await gate.close()
  }
}

const warnings = (limits: SomeLimits) => limits.logged.filter((line) => line['name'] === 'limits.local').length

async function pointsOf(id: string): Promise<number> {
  const rows = await database.db<{ points: number }[]>`select points from rate_limits where key = ${`i:${id}`}`
  return rows[0]?.points ?? 0
}

test('while the store refuses connections each coordinator keeps the whole limit by itself', async () => {
  await behindAGate({ identity: 60, org: 100 }, async (limits, gate) => {
    await gate.shut()
    const [one, two] = [aCaller(), aCaller()]
    assert.equal(await admitted(limits, one, 80), 60)
    assert.equal(await admitted(limits, two, 80), 60)
  })
})

test('what was drawn before the store went counts', async () => {
  await behindAGate({ identity: 60 }, async (limits, gate) => {
    const caller = aCaller()
    assert.equal(await admitted(limits, caller, 40), 40)
    await gate.shut()
    assert.equal(await admitted(limits, caller, 40), 20)
  })
})

test('while the store is silent nobody is refused, and after the first nobody waits for it', async () => {
  await behindAGate({ identity: 60, org: 6000 }, async (limits, gate) => {
    assert.equal(await admitted(limits, aCaller(), 1), 1)
    gate.freeze()
    const caller = aCaller()
    const decisions = await atOnce(limits, caller, 50)
    assert.ok(decisions.every(({ refusal }) => refusal === null))
    const next = limits.take(caller)
    assert.ok(!(next instanceof Promise))
    assert.equal(await admitted(limits, aCaller(), 80), 60)
  })
})

test('many who are disappointed at once are one line in the log', async () => {
  await behindAGate({ identity: 60 }, async (limits, gate) => {
    await gate.shut()
    await Promise.all(Array.from({ length: 200 }, () => admitted(limits, aCaller(), 2)))
    assert.ok(warnings(limits) >= 1 && warnings(limits) <= 3, String(warnings(limits)))
  })
})

test('when the store is back the next windows are shared again', async () => {
  await behindAGate({ identity: 60, windowMs: 200 }, async (limits, gate) => {
    await gate.shut()
    const caller = aCaller()
    assert.equal((await limits.take(caller)).refusal, null)
    assert.equal(await pointsOf(caller.id), 0)
    await gate.open()
    await untilPolled('a draw from the store', async () => {
      await limits.take(caller)
      return (await pointsOf(caller.id)) > 0
    })
  })
})
