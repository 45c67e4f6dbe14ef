import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { answerAs, FOREIGN, type Foreign } from '@windlass/shared/test/_kit/foreign.ts'
import { newId } from '@windlass/shared/ids.ts'
import type { DrainPlan, Intake, Runner } from '@windlass/shared/model/runner.ts'
import { startFake } from '../_kit/fake-service.ts'
import type { Answerer } from '../_kit/fake-service.ts'
import { goingCli, jsonLines, runCli } from '../_kit/run-cli.ts'
import { aRunner, anIntake } from '../_kit/samples.ts'

const RUN = newId('run')
const HOUR_MS = 3_600_000
const BEGAN = Date.now() - 120_000

interface Draining {
  url: string
  runner: Runner
  asked: { id: string; args: Record<string, unknown> }[]
}

/** A machine with one run; each look at it meets the next of these words, and then the last one for ever. */
async function draining(
  t: TestContext,
  looked: (Partial<Intake> | Error | Foreign)[],
  deadlineMs = HOUR_MS,
): Promise<Draining> {
  const now = Date.now()
  const intake = anIntake({
    state: 'draining',
    epoch: 4,
    since: now,
    deadlineAt: now + deadlineMs,
    onDeadline: 'leave',
  })
  const runner = aRunner({ intake, live: { offered: 0, executing: 1, parked: 0 } })
  let looks = 0
  const look: Answerer = (_, response) => {
    const answer = looked[Math.min(looks++, looked.length - 1)] ?? {}
    if ('body' in answer) return answerAs(response, answer)
    if (answer instanceof Error) throw answer
    const isEmpty = answer.state === 'drained'
    const counts = isEmpty ? { offered: 0, executing: 0, parked: 0 } : runner.live
    return { runner: { ...runner, live: counts, intake: { ...intake, ...answer } } }
  }
  const { url, asked } = await startFake(t, {
    'runners.list': () => ({ runners: [runner], nextCursor: null }),
    'runners.drain': () => ({ runner }),
    'runners.get': look,
    'runners.plan': () => ({ plan: aPlan(runner) }),
    'service.health': () => ({ status: 'ok', version: '0.1.0', uptimeMs: 1, tz: '2026c' }),
  })
  return { url, runner, asked }
}

function aPlan({ id }: Runner): DrainPlan {
  return {
    runner: id,
    epoch: 4,
    live: [{ run: RUN, workflow: 'hello', status: 'running', since: BEGAN, outcome: 'finishes', latestEndAt: null }],
    othersTakeWork: 1,
    queuedRuns: 3,
    warnings: ['Nobody else has the label gpu.'],
  }
}

test('drain --plan prints what a drain would meet and changes nothing', async (t) => {
  const { url, asked, runner } = await draining(t, [{}])
  const { code, stdout, stderr } = await runCli(['runners', 'drain', 'build-1', '--plan'], { url })
  assert.equal(code, 0, stderr)
  assert.match(stdout, new RegExp(`^${RUN}\thello\trunning\tends here\t`))
  assert.match(stderr, /1 other runner takes work in the pool, where 3 runs are queued\.\nNobody else/)
  assert.deepEqual(
    asked.map(({ id }) => id),
    ['runners.list', 'runners.plan'],
  )
  assert.equal((await runCli(['runners', 'plan', runner.id], { url })).stdout, stdout)
})

test('drain hands on what was wished and says what counts now', async (t) => {
  const { url, asked, runner } = await draining(t, [{}])
  const wishes = ['--deadline', '30m', '--on-deadline', 'cancel', '--reason', 'kernel', '--epoch', '3']
  const { stdout } = await runCli(['runners', 'drain', runner.id, ...wishes], { url })
  assert.equal(stdout, 'build-1 is draining (epoch 4)\n')
  const args = { runner: runner.id, deadlineMs: 1_800_000, onDeadline: 'cancel', reason: 'kernel', epoch: 3 }
  assert.deepEqual(asked[0]?.args, args)
  assert.equal((await runCli(['runners', 'drain', runner.id, '--deadline', 'soon'], { url })).code, 2)
})

test('drain --wait ends with 0 on the word of the service alone', async (t) => {
  const { url, runner } = await draining(t, [{}, { state: 'drained' }])
  const { code, stdout, stderr } = await runCli(['runners', 'drain', runner.id, '--wait'], { url })
  assert.equal(code, 0, stderr)
  assert.equal(stdout, 'build-1 is drained (epoch 4)\n')
  assert.match(
    stderr,
    new RegExp(
      '^build-1: 1 executing, 0 parked, 0 offered left, (1 h 0|59) min.* to the deadline; ' +
        `oldest ${RUN} \\(hello\\) for \\d+ min \\d+ s\n$`,
    ),
  )
})

test('with --json it prints a line for each change, and the runner at last', async (t) => {
  const { url, runner } = await draining(t, [{}, { state: 'drained' }])
  const { code, stdout, stderr } = await runCli(['runners', 'drain', runner.id, '--wait', '--json'], { url })
  assert.deepEqual([code, stderr], [0, ''])
  const [first, last] = jsonLines(stdout) as [{ live: { executing: number } }, { runner: Runner }]
  assert.equal(first.live.executing, 1)
  assert.equal(last.runner.intake.state, 'drained')
})

test('a coordinator that is away meanwhile is asked again, also where a proxy answers in its place', async (t) => {
  const away = new Fault('UNAVAILABLE')
  const [page404, page401] = FOREIGN.filter(({ status }) => status === 404 || status === 401)
  const { url, runner } = await draining(t, [{}, away, page404!, page401!, { state: 'drained' }])
  const { code, stdout, stderr } = await runCli(['runners', 'drain', runner.id, '--wait'], { url })
  assert.equal(code, 0, stderr)
  assert.match(stdout, /is drained/)
  assert.equal(stderr.match(/does not answer, asking again/g)?.length, 1)
})

test('when the deadline passes with something left it ends with 124', async (t) => {
  const { url, runner } = await draining(t, [{}], 0)
  const { code, stdout, stderr } = await runCli(['runners', 'drain', runner.id, '--wait'], { url })
  assert.deepEqual([code, stdout], [124, ''])
  assert.match(stderr, /error: The deadline has passed and build-1 is not drained: 1 executing/)
})

test('who resumes, drains anew or forgets the machine ends the waiting with a code of its own', async (t) => {
  const by = { kind: 'caller', name: 'Ada' } as const
  const resumed = await draining(t, [{ state: 'open', epoch: 5, by, reason: 'not today' }])
  const first = await runCli(['runners', 'drain', resumed.runner.id, '--wait'], { url: resumed.url })
  assert.equal(first.code, 6)
  assert.match(first.stderr, /it was resumed by Ada \(epoch 5 instead of 4\): not today\./)
  // Drained, but by another drain, whose deadline and reason are not ours.
  const anew = await draining(t, [{ state: 'drained', epoch: 6 }])
  assert.equal((await runCli(['runners', 'drain', anew.runner.id, '--wait'], { url: anew.url })).code, 6)
  const gone = await draining(t, [new Fault('NOT_FOUND')])
  const last = await runCli(['runners', 'drain', gone.runner.id, '--wait'], { url: gone.url })
  assert.equal(last.code, 6)
  assert.match(last.stderr, /was deregistered/)
})

test('Ctrl-C leaves the drain in place and says so', async (t) => {
  const { url, runner, asked } = await draining(t, [{}])
  const waiting = goingCli(t, ['runners', 'drain', runner.id, '--wait'], { url })
  await waiting.says(/1 executing/)
  const { code, stderr } = await waiting.interrupt()
  assert.equal(code, 130)
  assert.match(stderr, /No longer waiting; the drain of build-1 goes on\.\nNext: .*windlass runners resume/)
  assert.ok(!asked.some(({ id }) => id === 'runners.resume'))
})
