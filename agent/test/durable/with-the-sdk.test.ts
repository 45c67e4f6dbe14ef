import assert from 'node:assert/strict'
import { aBundle } from '../_kit/bundle.ts'
import { endingOf, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { playThrough } from '../_kit/small-journal.ts'
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
