import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { AgentRun } from '../../run/agent-run.ts'
import { keepGivenSecrets } from '../../run/given-secrets.ts'
import { createSecrets } from '../../run/secrets.ts'
import { aBundle } from '../_kit/bundle.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { answer } from '../_kit/http.ts'
import { playThrough } from '../_kit/small-journal.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** A new line at each call, as often as it takes. */
const lines = (bytes: number) => `${randomBytes(45).toString('base64')}\n`.repeat(bytes / 61)
const firstLine = (text: string) => text.slice(0, 60)

const aRunWith = (run: string) =>
  ({
    offer: { run, secrets: true, token: 't', variables: {} },
    unwanted: new AbortController().signal,
  }) as unknown as AgentRun

test('large secrets of a run leave the agent time for all others', async () => {
  const values = { A: randomBytes(47 * 1024).toString('base64'), B: randomBytes(47 * 1024).toString('base64') }
  const secrets = createSecrets({ secrets: async () => values })
  let turns = 0
  let next = setImmediate(function count() {
    turns += 1
    next = setImmediate(count)
  })
  const read = await secrets.read(aRunWith('run_1'))
  clearImmediate(next)
  // What takes so long is cut into more than some slices on any machine.
  assert.ok(turns > 20, `${turns} turns of the event loop`)
  assert.ok(read?.redactor.text(`${values.A} and ${values.B}`) === '*** and ***')
})

test('former values are hidden as far as there is room, and what is forgotten is named', async () => {
  const read: { KEY: string; SMALL: string; PIN: string }[] = []
  const now = () => read.at(-1)!
  const secrets = createSecrets({
    async secrets() {
      read.push({ KEY: lines(40 * 1024), SMALL: `small-${read.length}`, PIN: String(100 + read.length) })
      return now()
    },
  })
  const run = aRunWith('run_1')
  const forgotten: (readonly string[] | undefined)[] = []
  for (let start = 1; start <= 5; start++) {
    const hidden = await secrets.read(run)
    forgotten.push(hidden?.forgotten)
    const isHidden = read.map(({ KEY }) => hidden?.redactor.text(firstLine(KEY)) === '***')
    assert.deepEqual(
      isHidden,
      read.map((_, at) => at >= start - 3),
    )
    assert.equal(hidden?.redactor.text(now().SMALL), '***')
  }
  assert.deepEqual(forgotten, [[], [], [], ['KEY'], ['SMALL', 'KEY']])
})

test('a value that serves again is not the oldest one', async () => {
  const [first, second] = [lines(60 * 1024), lines(60 * 1024)]
  const values = [first, second, first, lines(60 * 1024)]
  const secrets = createSecrets({ secrets: async () => ({ KEY: values.shift()! }) })
  const run = aRunWith('run_1')
  for (let start = 1; start <= 3; start++) assert.deepEqual((await secrets.read(run))?.forgotten, [])
  const hidden = await secrets.read(run)
  assert.deepEqual(hidden?.forgotten, ['KEY'])
  assert.equal(hidden?.redactor.text(firstLine(first)), '***')
})

test('a former value is hidden however many other runs were given theirs meanwhile', () => {
  const given = keepGivenSecrets()
  given.add('run_a', { TOKEN: 'first-value' })
  given.rests('run_a')
  for (let n = 0; n < 5_000; n++) {
    given.add(`run_${n}`, { TOKEN: 'first-value', OWN: `of-run-${n}` })
    given.rests(`run_${n}`)
  }
  assert.deepEqual(given.add('run_a', { TOKEN: 'second-value' }), {
    values: new Map([['TOKEN', new Set(['first-value', 'second-value'])]]),
    forgotten: [],
  })
})

test('without room for the values of all waiting runs the oldest are named, and none of a run in progress', () => {
  const given = keepGivenSecrets({ heldBytes: 100_000 })
  const own = (run: string) => ({ OWN: `${run}-${'x'.repeat(10_000)}`, SAME: 'the same value' })
  const rotated = (run: string) => ({ OWN: `${run}-rotated`, SAME: 'the same value' })
  given.add('busy', own('busy'))
  const others = Array.from({ length: 20 }, (_, n) => `run_${n}`)
  for (const run of others) {
    given.add(run, own(run))
    given.rests(run)
  }
  assert.deepEqual(given.add('run_0', rotated('run_0')).forgotten, ['OWN'])
  assert.deepEqual(given.add('run_1', own('run_1')).forgotten, [], 'it is the value of now, and hidden')
  assert.deepEqual(given.add('run_19', rotated('run_19')).values.get('OWN')?.size, 2)
  const busy = given.add('busy', rotated('busy'))
  assert.deepEqual([busy.values.get('OWN')?.size, busy.forgotten], [2, []])
  for (const run of ['busy', ...others]) given.forget(run)
  assert.ok(!given.has('busy') && !given.has('run_19'))
})

const WAITS = `
  import { sleep } from 'windlass'
  export async function run() {
    await sleep('1h')
    return process.env.KEY.length
  }`

withAgent(
  'a run is told in its log what is hidden no longer',
  async ({ fake }) => {
    fake.secrets = (response) => answer(response, 200, { secrets: { KEY: lines(70 * 1024) } })
    const placements = await playThrough(fake, fake.offer(await aBundle({ 'main.mjs': WAITS }), { secrets: true }))
    await fake.ending(placements[1]!)
    assert.deepEqual(linesOf(placements[0]!), [])
    assert.match(linesOf(placements[1]!).join('\n'), /^Windlass no longer hides the oldest former values of KEY: /)
  },
  { env: { WINDLASS_AGENT_PARKED_MS: '0' } },
)
