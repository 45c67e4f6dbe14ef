import assert from 'node:assert/strict'
import { Readable } from 'node:stream'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aBundle } from '../_kit/bundle.ts'
import { endingOf, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { playThrough, recordsOf } from '../_kit/small-journal.ts'
import { withAgent } from '../_kit/with-agent.ts'

const PROGRAM = `
import { log, phase, sleep, step } from 'windlass'
export async function run() {
  console.log('begins')
  phase('first')
  process.stdout.write('is ')
  const number = await step('draws', () => {
    console.log('drawn')
    process.stdout.write('par')
    return Math.random()
  })
  await sleep('1h')
  process.stdout.write('tial\\n')
  console.error('half ')
  process.stderr.write('of ')
  await Promise.all([sleep('2h'), sleep(20), sleep('3h')])
  process.stderr.write('it\\n')
  log('ends', { number })
  await sleep('1h')
  return number
}`

const textOf = (placements: FakePlacement[]) => placements.flatMap(linesOf)
const phasesOf = (placements: FakePlacement[]) =>
  placements.flatMap(({ entries }) => entries).filter((entry) => entry[0] === 'e' && entry[2] === 'phase').length

const EXPECTED = ['begins', 'is drawn', 'partial', 'half ', 'of it', 'ends']

withAgent('a program of the SDK waits in its process and goes on', async ({ fake }) => {
  const first = fake.offer(await aBundle({ 'main.mjs': PROGRAM }))
  const placements = await playThrough(fake, first)
  assert.equal(placements.length, 1)
  assert.equal(endingOf(first)?.how, 'returned')
  assert.deepEqual(textOf(placements), EXPECTED)
})

withAgent(
  'a process that is given up at each wait leaves the same log, and its steps are not repeated',
  async ({ fake }) => {
    const first = fake.offer(await aBundle({ 'main.mjs': PROGRAM }))
    const placements = await playThrough(fake, first)
    assert.equal(placements.length, 4)
    const ending = endingOf(placements.at(-1)!)
    assert.ok(ending?.how === 'returned', JSON.stringify(ending))
    assert.deepEqual(textOf(placements), EXPECTED)
    assert.equal(phasesOf(placements), 1)
    const logged = placements.at(-2)!.entries.find((entry) => entry[0] === 'e' && entry[3].includes('ends'))
    assert.equal(JSON.parse(String(logged?.[3])).fields.number, JSON.parse(ending.outputText))
  },
  { env: { WINDLASS_AGENT_PARKED_MS: '0' } },
)

/** JSON takes six characters for one of these. */
const STEPS = 40
const LONG_PROGRAM = `
import { sleep, step } from 'windlass'
export async function run() {
  const ends = []
  for (let n = 0; n < ${STEPS}; n++) {
    const text = await step('draws', () => '\\u0001'.repeat(100_000) + Math.random())
    ends.push(text.length > 100_000 ? text.slice(100_000) : 'too short')
  }
  await sleep('1h')
  return ends
}`

withAgent(
  'a process that goes on with a long journal has all of its results',
  async ({ fake }) => {
    const first = fake.offer(await aBundle({ 'main.mjs': LONG_PROGRAM }))
    await until('its process is given up', () => endingOf(first)?.how === 'evicted')
    const records = [...recordsOf([first]).values()]
    for (const record of records)
      if (record.kind === 'sleep') Object.assign(record, { state: 'done', result: 'null', completed: 1 })
    const text = JSON.stringify(records)
    fake.journal = (response) => void Readable.from(pieces(Buffer.from(text))).pipe(response)
    const { run, epoch, bundle, inputText, secrets } = first.offer
    const journal = { entries: records.length, text: null }
    const again = { run, epoch: epoch + 1, inputText, secrets, replay: true, journal }
    const second = fake.offer(fake.bundles.get(bundle.digest)!, again)
    await until('it ends', () => endingOf(second))
    const ending = endingOf(second)!
    assert.ok(ending.how === 'returned', JSON.stringify(ending))
    const drawn = records
      .filter(({ kind }) => kind === 'step')
      .map(({ result }) => JSON.parse(result!)[0].slice(100_000))
    assert.equal(drawn.length, STEPS)
    assert.deepEqual(JSON.parse(ending.outputText), drawn)
  },
  { env: { WINDLASS_AGENT_PARKED_MS: '0' } },
)

function* pieces(bytes: Buffer): Generator<Buffer> {
  for (let at = 0; at < bytes.length; at += 60_000) yield bytes.subarray(at, at + 60_000)
}
