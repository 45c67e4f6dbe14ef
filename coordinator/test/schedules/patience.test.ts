// How long the ticks of a pass wait for orgs of which the ticks take long to decide.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { createPatience, type PassWait, type Patience } from '../../schedules/patience.ts'

let now = 0

function go(t: TestContext, ms: number): void {
  for (let left = ms; left > 0; left--) {
    now++
    t.mock.timers.tick(1)
  }
}

function aPatience(t: TestContext): Patience {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  return createPatience(() => now)
}

const decide = (wait: PassWait, orgs: number) => {
  for (let n = 0; n < orgs; n++) wait.decided()
}

/** How long a pass takes of which so many orgs are decided after so long, each by itself. */
function passOf(t: TestContext, patience: Patience, orgs: number, decidedAt: readonly number[]): number {
  const wait = patience.begin(orgs)
  const since = now
  while (!wait.isOver()) {
    go(t, 1)
    decide(wait, decidedAt.filter((at) => at === now - since).length)
  }
  return now - since
}

const times = <T>(count: number, act: (n: number) => T) => Array.from({ length: count }, (_, n) => act(n))

test('as few orgs as have a turn behind others at once are waited for 50 ms', (t) => {
  const patience = aPatience(t)
  assert.equal(passOf(t, patience, 3, []), 50)
  const ofOthers = times(97, () => 5)
  assert.equal(passOf(t, patience, 100, ofOthers), 50)
})

test('many that are late together are waited for until few of them are left', (t) => {
  const oneByOne = times(100, (n) => 2 * (n + 1))
  assert.equal(passOf(t, aPatience(t), 100, oneByOne), 2 * 97)
})

for (const orgs of [4, 1000])
  test(`${orgs} orgs are waited for no longer than 550 ms`, (t) => {
    assert.equal(passOf(t, aPatience(t), orgs, []), 550)
  })

test('passes wait time and again where many are decided meanwhile', (t) => {
  const patience = aPatience(t)
  const allAtOnce = times(60, () => 400)
  for (let n = 0; n < 50; n++) assert.equal(passOf(t, patience, 60, allAtOnce), 400)
})

for (const decidedAt of [[], [450]])
  test(`of the time of passes four slow orgs take a tenth, also where ${decidedAt.length} of them is decided`, (t) => {
    const patience = aPatience(t)
    const begun = now
    let waited = 0
    for (let n = 0; n < 200; n++) waited += passOf(t, patience, 4, decidedAt) - 50
    assert.ok(waited < 700 + 0.1 * (now - begun), `${waited} of ${now - begun} ms`)
    go(t, 5000)
    assert.equal(passOf(t, patience, 4, []), 550)
  })
