import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import type { AgentRun } from '../../run/agent-run.ts'
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
