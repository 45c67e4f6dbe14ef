import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Calls, callsOn } from './calls.ts'
import { execute, type Tools } from './process.ts'
import { aWorld, type World } from './world.ts'

const MINUTE_MS = 60_000

/** Executes it in one process, and returns what it was warned of. */
async function warningsOf(program: (calls: Calls, tools: Tools) => Promise<unknown>, options: Partial<Where> = {}) {
  const { world = aWorld(() => MINUTE_MS), replay = false, evicts } = options
  const warnings: string[] = []
  const onWarning = (text: string) => void warnings.push(text)
  const end = await execute({ world, replay, evicts, onWarning, program: (tools) => program(callsOn(tools), tools) })
  return { end, warnings }
}

interface Where {
  world: World
  replay: boolean
  evicts: () => boolean
}

const never = () => new Promise<never>(() => {})

test('a step that leaves steps and calls of other workflows behind is warned of, with their names', async () => {
  const { warnings } = await warningsOf(async ({ step, call, sleep }) => {
    await step('kick', () => {
      void step('mail', never)
      void call('report', { month: 5 })
      return 1
    })
    await sleep(5000)
  })
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /^Step "kick" ended while 2 calls .* were under way: step "mail", workflow "report"\. /)
  assert.match(warnings[0]!, /nobody makes such a call again.*Await calls inside of the step, or make them outside/)
})

test('many calls are counted, and of equal steps one is told', async () => {
  const { warnings } = await warningsOf(async ({ step, call }) => {
    for (const each of [1, 2]) {
      await step('each', () => {
        for (let at = 0; at < 5; at++) void call(`child-${each}-${at}`, at)
      })
    }
  })
  assert.equal(warnings.length, 1)
  assert.match(
    warnings[0]!,
    /5 calls .*: workflow "child-1-0", workflow "child-1-1", workflow "child-1-2" and 2 more\./,
  )
})

test('a loop of steps with names of their own is warned of twenty times', async () => {
  const { warnings } = await warningsOf(async ({ step, call }) => {
    for (let at = 0; at < 30; at++) await step(`item ${at}`, () => void call('child', at))
  })
  assert.equal(warnings.length, 20)
})

test('what follows from a sleep or a call after the end of its step is warned of', async () => {
  const { end, warnings } = await warningsOf(async ({ step, call, sleep }) => {
    await step('later', () => {
      void sleep(5000).then(() => call('report', 1))
      return 1
    })
    await sleep(MINUTE_MS * 2)
    return 'done'
  })
  assert.deepEqual(end, { how: 'returned', value: 'done' })
  assert.equal(warnings.length, 1)
  assert.match(warnings[0]!, /^Step "later" had ended when it called workflow "report"\. Should this process/)
})

test('the losers of a race with a sleep or a question are meant to be left behind', async () => {
  const { warnings } = await warningsOf(
    async ({ step, sleep, ask, call }) => {
      await step('race', () => Promise.race([call('quick', 1), sleep(1e9), ask('Sure?')]))
      await step('short', () => Promise.race([sleep(1), sleep(20)]))
    },
    { world: aWorld(({ kind }) => (kind === 'child' ? 5 : 1e9)) },
  )
  assert.deepEqual(warnings, [])
})

test('a step that awaits what it calls, or what the journal has by then, is not warned of', async () => {
  const { warnings } = await warningsOf(async ({ step, call }, { raw }) => {
    await step('awaits', async () => {
      await Promise.all([step('a', () => raw(5)), call('b', 1)])
    })
    // Its loser has ended too, and both are on their way into the journal.
    await step('two', () => Promise.race([step('a', () => 1), step('b', () => 2)]))
  })
  assert.deepEqual(warnings, [])
})

test('a step that fails is tried again, or somebody has dealt with it', async () => {
  const { warnings } = await warningsOf(async ({ step }) => {
    const act = async () => {
      void step('other', never)
      await step('fails', () => Promise.reject(new Error('no')))
    }
    await step('outer', act).catch(() => {})
  })
  assert.deepEqual(warnings, [])
})

test('a replay does not warn again of a step that has its result', async () => {
  const world = aWorld(() => MINUTE_MS)
  const program = async ({ step, call, sleep }: Calls) => {
    await step('kick', () => void call('report', 1))
    await sleep(5000)
  }
  const first = await warningsOf(program, { world, evicts: () => true })
  assert.deepEqual([first.end.how, first.warnings.length], ['evicted', 1])
  const second = await warningsOf(program, { world, replay: true })
  assert.deepEqual([second.end.how, second.warnings], ['returned', []])
  world.attempt += 1
  const third = await warningsOf(program, { world })
  assert.deepEqual([third.end.how, third.warnings], ['returned', []])
})
