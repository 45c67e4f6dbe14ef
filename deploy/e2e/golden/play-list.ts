import { writeFileSync } from 'node:fs'
import type { Stage } from './stage.ts'
import type { World } from './world.ts'

/** One program and what is done to it. */
export interface Play {
  readonly name: string
  /** Name of a play in `programs/plays`; `typed` is a program of its own. */
  readonly play: string
  readonly workflow?: string
  readonly input?: object
  /** Fields of the trigger beside the input. */
  readonly trigger?: object
  /** It waits before any other play is triggered. */
  readonly waitsFirst?: boolean
  during?(stage: Stage, world: World): Promise<void>
  /** In a sequel, once it stands behind the one before it: what is said of it then. */
  behind?(stage: Stage, world: World): Promise<string[]>
}

const FORGETFUL = { workflow: 'forgetful' }

/** Answers once the run waits, so that the log always says that it did. */
const answering = (prompt: string, answer: unknown) => async (stage: Stage) => {
  await stage.sees('run.awaiting_input')
  await stage.answer(prompt, answer)
}

/** Lets its child end once the run waits for it. */
const childAnswering = (prompt: string) => async (stage: Stage) => {
  const child = await stage.child()
  await stage.sees('run.waiting_for_child')
  await child.sees('run.awaiting_input')
  await child.answer(prompt, 'an answer')
}

const cancelling = (reason: string, type: string, text?: string) => async (stage: Stage) => {
  await stage.sees(type, text)
  await stage.client.runs.cancel({ run: stage.run, reason })
}

const WAITS: readonly Play[] = [
  { name: 'returns a value', play: 'returns' },
  { name: 'returns nothing', play: 'nothing' },
  { name: 'returns what it declares', play: 'greets', workflow: 'typed', input: { name: 'Ada', times: 2 } },
  { name: 'sleeps', play: 'sleeps' },
  { name: 'sleeps and is replayed', play: 'sleeps', ...FORGETFUL },
  { name: 'sleeps for less than a second', play: 'naps' },
  { name: 'asks and is answered', play: 'asks', during: answering('Ship 1.4.2?', { approved: true }) },
  {
    name: 'asks twice',
    play: 'asksTwice',
    async during(stage) {
      await answering('First?', 1)(stage)
      await stage.sees('run.awaiting_input', '', 2)
      await stage.answer('Second?', [2])
    },
  },
  { name: 'asks and goes on with a default answer when time is up', play: 'asksInVain' },
  { name: 'asks and fails when time is up', play: 'asksInVainAndFails' },
  { name: 'asks and catches that time is up, replayed', play: 'asksAndCatches', ...FORGETFUL },
  { name: 'calls a run', play: 'calls', during: childAnswering('Child?') },
  { name: 'calls a run that fails and catches it', play: 'callsAFailure', during: childAnswering('Fail?') },
  { name: 'calls a run that fails', play: 'callsAFailureAndFails', during: childAnswering('Fail?') },
  { name: 'calls a workflow that does not exist', play: 'callsNobody' },
  { name: 'executes steps', play: 'steps' },
  { name: 'executes steps side by side', play: 'parallelSteps' },
  {
    name: 'waits for an answer and a time side by side',
    play: 'parallelWaits',
    async during(stage) {
      await stage.sees('run.awaiting_input', '', 2)
      await stage.answer('Beside?', 'late')
    },
  },
  { name: 'goes on with the first of two waits', play: 'races', during: answering('Faster?', 'a person') },
  {
    name: 'is replayed',
    play: 'replays',
    ...FORGETFUL,
    async during(stage) {
      await stage.sees('run.awaiting_input')
      await stage.hasNoProcess()
      await stage.answer('Go on?', { on: true })
    },
  },
]

const ENDS: readonly Play[] = [
  { name: 'throws', play: 'throws' },
  { name: 'throws an error with a code', play: 'throwsACode' },
  { name: 'throws a text', play: 'throwsAText' },
  { name: 'throws twice and is started again', play: 'retried', workflow: 'retried' },
  { name: 'throws more often than it may', play: 'throws', workflow: 'retried' },
  { name: 'exits', play: 'exits' },
  { name: 'leaves a rejection to nobody', play: 'rejects' },
  { name: 'waits for what never happens', play: 'neverSettles' },
  { name: 'returns too much', play: 'tooLarge' },
  { name: 'returns what is no JSON', play: 'noJson' },
  { name: 'returns what it does not declare', play: 'greets', workflow: 'typed', input: { name: 'Liar' } },
  { name: 'executes too long', play: 'spins', workflow: 'brief' },
  { name: 'executes too long and is deaf', play: 'deaf', workflow: 'brief' },
  {
    name: 'waits too long',
    play: 'asksAndTidies',
    workflow: 'walled',
    trigger: { priority: 100 },
    // Its time runs from its creation on, and it has to wait before that is over.
    waitsFirst: true,
  },
  { name: 'is queued too long', play: 'returns', workflow: 'unserved' },
  { name: 'logs and has phases', play: 'talks' },
  { name: 'writes to stderr', play: 'complains' },
  { name: 'tells its secrets', play: 'tellsSecrets' },
  { name: 'knows its environment', play: 'knows', trigger: { environment: 'staging', tags: ['a', 'b'], priority: 7 } },
]

const CANCELS: readonly Play[] = [
  {
    name: 'is cancelled in the queue',
    play: 'returns',
    workflow: 'waiting',
    during: cancelling('not needed', 'run.queued'),
  },
  {
    name: 'is cancelled before its delay is over',
    play: 'returns',
    trigger: { delayMs: 3_600_000 },
    during: async (stage) => void (await stage.client.runs.cancel({ run: stage.run })),
  },
  { name: 'is cancelled and tidies up', play: 'listens', during: cancelling('enough', 'log.stdout', 'begun') },
  { name: 'is cancelled and deaf', play: 'deaf', during: cancelling('', 'log.stdout', 'deaf') },
  { name: 'is cancelled while it asks', play: 'asksAndTidies', during: cancelling('', 'run.awaiting_input') },
  {
    name: 'is cancelled with the run that it called',
    play: 'calls',
    async during(stage) {
      const child = await stage.child()
      await child.sees('run.awaiting_input')
      await cancelling('both', 'run.waiting_for_child')(stage)
      await child.over()
    },
  },
]

const LOSSES: readonly Play[] = [
  { name: 'is killed once', play: 'dies' },
  { name: 'is killed more often than it may', play: 'diesAlways' },
  {
    name: 'is killed while it only waits',
    play: 'isKilledParked',
    async during(stage) {
      const { data } = await stage.sees('log.stdout', 'pid ')
      await stage.sees('run.awaiting_input')
      process.kill(Number(/pid (\d+)/.exec(JSON.stringify(data))![1]), 'SIGKILL')
      await stage.hasNoProcess()
      await stage.answer('Killed?', 'not for good')
    },
  },
  {
    name: 'does something else when it is replayed, and is restarted',
    play: 'changesItsMind',
    ...FORGETFUL,
    async during(stage) {
      await stage.sees('run.awaiting_input')
      await stage.hasNoProcess()
      await stage.answer('Changed?', 1)
      await stage.sees('run.blocked')
      await stage.client.runs.restart({ run: stage.run })
    },
  },
]

/** All of them may be executed at once. */
export const PLAYS: readonly Play[] = [...WAITS, ...ENDS, ...CANCELS, ...LOSSES]

/** Each one is triggered once the one before it executes. */
export const SEQUELS: readonly (readonly Play[])[] = [
  [
    { name: 'has the only place', play: 'takesItsTime', workflow: 'single' },
    {
      name: 'waits for the only place',
      play: 'knows',
      workflow: 'single',
      async behind(stage, world) {
        const { causes } = (await stage.client.runs.why({ run: stage.run })).why
        writeFileSync(world.mark('takesItsTime'), '')
        return causes.map(({ code, message }) => `waits: ${code}, ${message}`)
      },
    },
  ],
  [
    { name: 'is the first run of a process', play: 'counts', workflow: 'reused' },
    { name: 'is the second run of a process', play: 'counts', workflow: 'reused' },
  ],
]

/** Something that all runs of the coordinator or of an agent would notice. */
export interface Upheaval {
  readonly plays: readonly (Play & { begun(stage: Stage): Promise<unknown>; after?: Play['during'] })[]
  strike(world: World): Promise<void>
}

/** Played after everything else and one after the other: the programs have begun, then it happens, then they go on. */
export const UPHEAVALS: readonly Upheaval[] = [
  {
    plays: [
      {
        name: 'loses its agent',
        play: 'losesItsAgent',
        ...FORGETFUL,
        begun: (stage) => stage.sees('log.stdout', 'attempt 1'),
      },
    ],
    async strike(world) {
      await world.forgetful().kill()
      await world.forgetful().start()
    },
  },
  {
    plays: [
      {
        name: 'loses the coordinator while it executes',
        play: 'losesTheCoordinator',
        begun: (stage) => stage.sees('log.stdout', 'before'),
        after: async (_, world) => writeFileSync(world.mark('losesTheCoordinator'), ''),
      },
      {
        name: 'loses the coordinator while it asks',
        play: 'outlivesTheCoordinator',
        begun: (stage) => stage.sees('run.awaiting_input'),
        after: (stage) => stage.answer('Still there?', 'yes'),
      },
    ],
    strike: (world) => world.restartCoordinator(),
  },
]
