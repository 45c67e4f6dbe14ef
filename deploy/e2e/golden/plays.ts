import { randomBytes } from 'node:crypto'
import { ensurePool } from '../_kit/agents.ts'
import { deploy, programFiles } from '../_kit/runs.ts'
import type { Act } from './golden-file.ts'
import { type Play, PLAYS, SEQUELS, type Upheaval, UPHEAVALS } from './play-list.ts'
import { Stage } from './stage.ts'
import type { World } from './world.ts'

const SECRET = `golden-${randomBytes(12).toString('hex')}`

/** The program under several descriptors. */
const DESCRIPTORS: readonly ({ slug: string } & Record<string, unknown>)[] = [
  { slug: 'plays', timeout: '10m', cancelGrace: '1s', retries: { crash: 1 } },
  { slug: 'forgetful', pool: 'forgetful', timeout: '10m' },
  { slug: 'retried', retries: { error: { max: 2, delay: '1s', factor: 1 } } },
  // It runs from before Node has started.
  { slug: 'brief', timeout: '5s', cancelGrace: '1s' },
  { slug: 'walled', timeout: { wall: '15s' }, cancelGrace: '1s' },
  { slug: 'unserved', pool: 'unserved', timeout: { queue: '1s' } },
  { slug: 'waiting', pool: 'unserved' },
  { slug: 'single', concurrency: 1 },
  { slug: 'reused', process: 'reuse', concurrency: 1 },
]

/** The programs one beside the other. */
export async function calmActs(world: World): Promise<Act[]> {
  await deployPlays(world)
  const early = await beginEarly(world)
  const single = Promise.all(PLAYS.map((play) => perform(world, play, early.get(play))))
  const sequels = Promise.all(SEQUELS.map((plays) => performSequel(world, plays)))
  return [...(await single), ...(await sequels).flat()]
}

export async function upheavalActs(world: World): Promise<Act[]> {
  const acts: Act[] = []
  for (const upheaval of UPHEAVALS) acts.push(...(await performUpheaval(world, upheaval)))
  return acts
}

async function deployPlays(world: World): Promise<void> {
  const { client } = world.instance()
  await Promise.all([ensurePool(client, 'forgetful'), ensurePool(client, 'unserved')])
  await client.variables.set({ name: 'GOLDEN_VARIABLE', value: 'seen by all' })
  await world.operator().secrets.set({ name: 'GOLDEN_SECRET', value: SECRET })
  await client.environments.create({ name: 'staging' })
  await deploy(client, programFiles('../golden/programs/typed'))
  for (const descriptor of DESCRIPTORS) await deploy(client, programFiles('../golden/programs/plays', descriptor))
}

/** Those whose time must not be over while everything else is triggered. */
async function beginEarly(world: World): Promise<Map<Play, Stage>> {
  const early = new Map<Play, Stage>()
  for (const play of PLAYS.filter(({ waitsFirst }) => waitsFirst)) {
    const stage = await begin(world, play)
    await stage.sees('run.awaiting_input')
    early.set(play, stage)
  }
  return early
}

/** Executes one from its trigger, unless it has begun, to its end. */
export async function perform(world: World, play: Play, begun?: Stage): Promise<Act> {
  const stage = begun ?? (await begin(world, play))
  try {
    await play.during?.(stage, world)
    return await finish(world, play, stage)
  } catch (cause) {
    throw new Error(`${play.name}: ${(cause as Error).message}`, { cause })
  }
}

/** Triggers them one after the other, each once the one before it executes. */
async function performSequel(world: World, plays: readonly Play[]): Promise<Act[]> {
  const begun: { stage: Stage; said: string[] }[] = []
  for (const play of plays) {
    await begun.at(-1)?.stage.sees('run.running')
    const stage = await begin(world, play)
    begun.push({ stage, said: (await play.behind?.(stage, world)) ?? [] })
  }
  const acts = plays.map(async (play, n) => {
    const { stage, said } = begun[n]!
    const { name, text } = await finish(world, play, stage)
    return { name, text: [...said, text].join('\n') }
  })
  return Promise.all(acts)
}

/** Lets it happen once all have begun. */
async function performUpheaval(world: World, upheaval: Upheaval): Promise<Act[]> {
  const { plays } = upheaval
  const begun = plays.map(async (play) => {
    const stage = await begin(world, play)
    await play.begun(stage)
    return stage
  })
  const stages = await Promise.all(begun)
  await upheaval.strike(world)
  await Promise.all(plays.map(async (play, n) => play.after?.(stages[n]!, world)))
  return Promise.all(plays.map((play, n) => finish(world, play, stages[n]!)))
}

async function begin(world: World, { play, workflow = 'plays', input, trigger }: Play): Promise<Stage> {
  const { client } = world.instance()
  const asked = workflow === 'typed' ? input : { play, ...(MARKED.includes(play) && { mark: world.mark(play) }) }
  const { run } = await client.runs.trigger({ workflow, input: asked, ...trigger })
  return new Stage(client, run.id)
}

async function finish(world: World, { name }: Play, stage: Stage): Promise<Act> {
  return { name, text: await stage.story(world.names()) }
}

const MARKED = ['changesItsMind', 'losesTheCoordinator', 'takesItsTime']
