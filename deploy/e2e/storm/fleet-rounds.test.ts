// Four hosts in network namespaces of their own and one coordinator: in each round some of them are cut off, slowed down, filled
// up, killed or rebooted. WINDLASS_TEST_ROUNDS=<number> plays that many rounds, WINDLASS_TEST_SEED=<number> repeats their choices.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import { FAULTS, type FaultName } from '../_kit/faults.ts'
import { familiesEnded, judge } from '../_kit/fleet-rules.ts'
import { SCALED } from '../_kit/cluster.ts'
import { type Fleet, startFleet } from '../_kit/fleet.ts'
import type { FleetHost } from '../_kit/hosts.ts'
import { ledgerOf } from '../_kit/ledger.ts'
import { noHosts } from '../_kit/netns.ts'
import { rounds } from '@windlass/shared/test/_kit/rounds.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, type Random, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { until } from '../_kit/until.ts'
import type { Input, Part } from '../programs/fleet/index.ts'

const RUNS = 12
const ROUND_MS = 60_000
/** Programs of a frozen host go on for a moment when it thaws, until the agent has had its turn. */
const THAW_MS = 1000
const GONE_MS = 15_000
const WORKFLOWS = ['fleet-fresh', 'fleet-reuse'] as const
/** Two of the hosts keep the processes of programs that wait, two give them up at once. */
const HOSTS = [
  { name: 'anna' },
  { name: 'bert' },
  { name: 'carl', env: { WINDLASS_AGENT_PARKED_MS: '0' } },
  { name: 'dora', env: { WINDLASS_AGENT_PARKED_MS: '0' } },
]

const skip = noHosts() ?? false
const seed = chosenSeed()
let fleet: Fleet

before(async () => {
  if (skip) return
  console.log(`again: ${repeated(import.meta.filename, { SEED: seed })}`)
  fleet = await startFleet({ env: SCALED, hosts: HOSTS, workflows: { 'fleet-fresh': 'fresh', 'fleet-reuse': 'reuse' } })
})

after(() => fleet?.stop())

interface Round {
  seed: number
  text: string
  runs: number
  lost: number
  overlapMs: number
}

test('whatever happens to its hosts, no run is lost, doubled or left behind', { skip }, async (t) => {
  const played: Round[] = []
  for (const n of rounds({ test: 5, storm: 40 })) {
    const round = await play(seed + n)
    played.push(round)
    console.log(`${played.length}. seed ${round.seed}: ${round.text}; ${round.runs} runs, ${round.lost} attempts lost`)
  }
  assert.equal(await fleet.cluster.metric('windlass_orphans_total'), 0)
  const [runs, lost] = [sum(played, ({ runs }) => runs), sum(played, ({ lost }) => lost)]
  const thaw = Math.max(...played.map(({ overlapMs }) => overlapMs))
  t.diagnostic(
    `${played.length} rounds, ${runs} runs, ${lost} attempts lost; executed twice after a thaw: ${Math.round(thaw)} ms`,
  )
  for (const host of fleet.hosts) {
    assert.equal(await host.stop(), 0, host.process().stderr().slice(-3000))
    assert.deepEqual(host.net.pids(), [])
  }
})

function sum<T>(all: readonly T[], of: (each: T) => number): number {
  return all.reduce((total, each) => total + of(each), 0)
}

/** One or two hosts have one fault each, at moments and with figures that the seed decides, while runs come in. */
async function play(roundSeed: number): Promise<Round> {
  const random = randomOf(roundSeed)
  const faults = chosenFaults(random)
  try {
    const suffering = faults.map(({ name, host, afterMs }) =>
      suffer(name, host, { afterMs, random: randomOf(roundSeed) }),
    )
    const ids = await triggerAll(random)
    const texts = await Promise.all(suffering)
    const runs = await familiesEnded(fleet.client, ids, ROUND_MS)
    const tolerated = faults.some(({ name }) => name === 'frozen') ? THAW_MS : 0
    const judged = await Promise.all(runs.map((run) => judge(fleet.client, run, tolerated)))
    assert.deepEqual(
      judged.flatMap(({ wrong }) => wrong),
      [],
    )
    await nothingLivesOn(runs.filter(({ workflow }) => workflow.slug === WORKFLOWS[0]).map(({ id }) => id))
    const lost = sum(judged, ({ attempts }) => attempts - 1)
    const overlapMs = Math.max(...judged.map(({ overlapMs }) => overlapMs))
    return { seed: roundSeed, text: texts.join(' + '), runs: runs.length, lost, overlapMs }
  } catch (error) {
    const what = faults.map(({ name, host, afterMs }) => `${name} of ${host.name} after ${afterMs} ms`).join(', ')
    const again = repeated(import.meta.filename, { SEED: roundSeed, ROUNDS: 1 })
    throw new Error(`seed ${roundSeed} (${what}): ${(error as Error).message}\nThis round: ${again}`, { cause: error })
  }
}

interface Chosen {
  name: FaultName
  host: FleetHost
  afterMs: number
}

function chosenFaults(random: Random): Chosen[] {
  const names = Object.keys(FAULTS) as FaultName[]
  const others = [...fleet.hosts]
  return Array.from({ length: random.between(1, 2) }, () => {
    const [host] = others.splice(random.between(0, others.length - 1), 1)
    return { name: random.pick(names), host: host!, afterMs: random.between(300, 2500) }
  })
}

async function suffer(
  name: FaultName,
  host: FleetHost,
  { afterMs, random }: { afterMs: number; random: Random },
): Promise<string> {
  await wait(afterMs)
  return `${host.name}: ${await FAULTS[name](host, random)}`
}

async function triggerAll(random: Random): Promise<string[]> {
  const ids: string[] = []
  for (let n = 0; n < RUNS; n++) {
    const workflow = random.pick(WORKFLOWS)
    const input: Input = { folder: fleet.folder, parts: partsOf(random, workflow) }
    ids.push((await fleet.client.runs.trigger({ workflow, input })).run.id)
    await wait(random.between(0, 200))
  }
  return ids
}

/** Short, long, talkative, with steps, asleep, or with children. */
function partsOf(random: Random, workflow: string): Part[] {
  const short: Part = { lines: random.between(1, 5), takesMs: random.between(0, 100) }
  const long: Part[] = [1, 2, 3].map(() => ({ lines: 10, takesMs: random.between(500, 2000) }))
  const child = { workflow, parts: [{ lines: 2, takesMs: random.between(0, 2000) }] }
  return random.pick<Part[]>([
    [short],
    long,
    long,
    [{ lines: 400, takesMs: 10 }, short, { lines: 400, takesMs: 100 }],
    [1, 2, 3, 4].map((n) => ({ ...short, next: { step: `step ${n}` } })),
    [{ ...short, next: { sleepMs: random.between(100, 3000) } }, { ...short, next: { sleepMs: 200 } }, short],
    [{ ...short, next: { child } }, short],
  ])
}

/** Each run has a process of its own, which nobody needs any more. */
async function nothingLivesOn(ids: readonly string[]): Promise<void> {
  const pids = new Set(ids.flatMap((id) => ledgerOf(fleet.folder, id).map(({ pid }) => pid)))
  const living = () => fleet.hosts.flatMap((host) => host.net.pids()).filter((pid) => pids.has(pid))
  await until('the end of every process', () => living().length === 0, { ms: GONE_MS, more: () => living().join(' ') })
}
