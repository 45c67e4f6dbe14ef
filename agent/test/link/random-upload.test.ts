// Whatever is said, cut, killed, lost and unreadable meanwhile: what programs say comes once and in order.
import { mock, test } from 'node:test'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import { repeated } from '@windlass/shared/test/_kit/repeated.ts'
import { chosenSeed, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { aFolder } from '../_kit/an-agent.ts'
import { kindOf } from '../_kit/upload/kinds.ts'
import { assertInFiles, assertOrder, isDone, sweep } from '../_kit/upload/outcome.ts'
import { type Program, UploadWorld } from '../_kit/upload/world.ts'

const MOST_ACTS = 600
/** Some of its waits are of 5 and 10 s. */
const MOST_IDLE = 200

const clock = { now: 1_000 }

function pass(ms: number): void {
  clock.now += ms
  mock.timers.tick(ms)
}

const WAITS_MS = [...Array.from({ length: 20 }, () => 1), 3, 3, 3, 3, 3, 30, 30, 30, 700, 700, 700, 6_000, 31_000]

type Act = (world: UploadWorld, program: Program) => unknown

async function times(count: number, act: () => unknown): Promise<void> {
  for (let n = 0; n < count; n++) await act()
}

function flood(world: UploadWorld, program: Program): void {
  world.say(program, 30, 100)
  world.spool.flush()
}

/** With their weights. */
const ACTS: [number, Act][] = [
  [100, (world) => world.open()],
  [200, (world, program) => world.say(program, world.random.pick([1, 1, 3, 30, 200]), world.random.pick([0, 0, 100]))],
  [40, (world, program) => world.say(program, world.random.pick([1, 3, 10]), world.random.pick([10, 1_000, 5_000]))],
  [1, (world, program) => world.say(program, 2, 200_000)],
  [4, (world, program) => times(30, () => flood(world, program))],
  [30, (world, program) => world.end(program)],
  [50, (world) => world.spool.flush()],
  [50, (world) => world.dial()],
  [15, (world) => world.cut()],
  [115, (world) => times(world.random.between(1, 8), () => world.connection.arrive())],
  [100, (world) => times(world.random.between(1, 5), () => world.db.commit())],
  [100, (world) => times(world.random.between(1, 5), () => world.hear())],
  [100, (world) => times(world.random.between(1, 6), () => read(world))],
  [70, ({ random }) => pass(random.pick(WAITS_MS))],
  [3, (world, program) => world.drop(program)],
  [6, (world) => world.kind.forgets && world.setBackDatabase()],
  [8, (world) => world.kind.files !== 'readable' && world.takeFileAway()],
  [2, (world) => world.mendFiles()],
  [5, (world) => world.kind.ways.length > 0 && world.restart(world.random.pick(world.kind.ways))],
  [4, (world) => assertInFiles(world)],
  [20, (world, program) => assertOrder(world, program, false)],
]
const ALL = ACTS.flatMap(([weight, act]) => Array.from({ length: weight }, () => act))

async function read(world: UploadWorld): Promise<boolean> {
  const isGiven = await world.reads.give()
  if (isGiven) await world.settle()
  return isGiven
}

/** The connection stays and is answered, until it is over or nothing moves any more. */
async function goOn(world: UploadWorld, isOver: () => boolean): Promise<void> {
  for (let idle = 0; idle < MOST_IDLE && !isOver(); idle += 1) {
    world.dial()
    world.spool.flush()
    let isMoving = false
    while (world.connection.arrive() || world.db.commit() || world.hear()) isMoving = true
    await world.settle()
    if (await read(world)) idle -= 0.8
    if (isMoving) idle = 0
    else pass(idle % 2 < 1 ? 5 : 700)
    await world.settle()
    sweep(world)
  }
}

async function comeToAnEnd(world: UploadWorld): Promise<void> {
  for (const program of world.placements.values()) if (world.random.next() < 0.5) world.end(program)
  // Of what the database has lost, an agent with nothing to say hears at its next welcome.
  world.cut()
  const unreadable = world.files.unreadable()
  const isFree = (program: Program) => !world.held(program)?.parts.some(({ segment }) => unreadable.has(segment))
  const free = () => [...world.placements.values()].filter((each) => isFree(each) && !each.risks.has('database'))
  await goOn(world, () => free().every((program) => isDone(world, program)))
  for (const program of free()) assertOrder(world, program, true)
  world.mendFiles('unreadable')
  await goOn(
    world,
    () => world.connection.isSilent && [...world.placements.values()].every((program) => isDone(world, program)),
  )
  for (const program of world.placements.values()) assertOrder(world, program, true)
  assertInFiles(world)
}

async function scenario(seed: number): Promise<void> {
  const random = randomOf(seed)
  const { folder, remove } = await aFolder()
  const world = new UploadWorld(folder, random, kindOf(random))
  await world.start()
  try {
    for (let left = random.between(20, MOST_ACTS); left > 0; left--) {
      if (world.placements.size === 0) world.open()
      const program = random.pick([...world.placements.values()])
      if (program) await random.pick(ALL)(world, program)
      await world.settle()
      sweep(world)
    }
    await comeToAnEnd(world)
  } finally {
    world.close()
    await remove()
  }
}

test('what programs say comes once and in order, whatever happens meanwhile', async (t) => {
  mock.timers.enable({ apis: ['setTimeout', 'setImmediate'] })
  mock.method(performance, 'now', () => clock.now)
  t.after(() => mock.restoreAll())
  t.after(() => mock.timers.reset())
  const first = chosenSeed()
  for (let seed = first; seed < first + amount({ test: 20, storm: 1_000 }); seed++)
    await scenario(seed).catch((error: Error) => {
      throw new Error(`${error.message}\n\nAgain: ${repeated(import.meta.filename, { SEED: seed })}`, { cause: error })
    })
})
