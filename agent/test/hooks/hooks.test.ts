import assert from 'node:assert/strict'
import { chmod, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgent } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { kindsOf } from '../_kit/durable.ts'
import { endingOf, FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'

/** An agent with these hooks; `seen` is a folder for what they leave behind. */
async function withHooks(context: TestContext, hooks: Record<string, string>, env: Record<string, string> = {}) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const seen = path.join(folder, 'seen')
  const hooksFolder = path.join(folder, 'hooks')
  for (const each of [seen, hooksFolder]) await mkdir(each, { mode: 0o755 })
  for (const [name, body] of Object.entries(hooks)) {
    await writeFile(path.join(hooksFolder, name), `#!/bin/sh\nSEEN=${seen}\n${body}\n`)
    await chmod(path.join(hooksFolder, name), 0o755)
  }
  const agent = await anAgent(fake.url, path.join(folder, 'home'), { WINDLASS_AGENT_HOOKS: hooksFolder, ...env })
  context.after(async () => {
    for (let times = 0; times < 3; times++) agent.stop()
    await agent.done
    await fake.close()
    await remove()
  })
  const said = () => agent.lines.filter(({ name }) => name === 'hook.said').map(({ text }) => String(text))
  return { fake, agent, hooksFolder, seen: (name: string) => path.join(seen, name), said }
}

test('pre-claim keeps the agent from asking as long as it says no', async (context) => {
  const { fake, agent, seen } = await withHooks(context, {
    'pre-claim': `[ -e $SEEN/open ] && exit 0; echo looking; echo 'the backup is running' >&2; exit 3`,
  })
  const placement = fake.offer(await aProgram(`return 1`))
  const failed = await until('it says no', () =>
    agent.lines.find(({ name, check }) => name === 'check.fails' && check === 'pre-claim'),
  )
  assert.match(String(failed.reason), /the backup is running/)
  assert.equal(placement.state, 'offered')
  assert.equal(fake.polling(), 0)
  await writeFile(seen('open'), '')
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
})

test('pre-run gets facts without secrets, and its no puts the run off', async (context) => {
  const { fake, seen, said } = await withHooks(context, {
    'pre-run': `cat > $SEEN/facts; env > $SEEN/env; echo asked; [ "$WINDLASS_WORKFLOW" = test ] && exit 0; echo 'not this one'; exit 1`,
  })
  fake.secrets = { KEY: 'sesame-opens' }
  const more = { secrets: true, variables: { PLAIN: 'variable-value' }, inputText: '"the-input"' }
  const placement = fake.offer(await aProgram(`return 1`), more)
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
  const facts = JSON.parse(await readFile(seen('facts'), 'utf8'))
  assert.deepEqual(facts, {
    hook: 'pre-run',
    run: placement.offer.run,
    attempt: 1,
    epoch: 1,
    org: 'default',
    environment: null,
    replay: false,
    workflow: { slug: 'test', version: 1 },
  })
  const env = await readFile(seen('env'), 'utf8')
  assert.match(env, new RegExp(`WINDLASS_RUN_ID=${placement.offer.run}`))
  assert.doesNotMatch(env, /sesame|variable-value|the-input|run-token|wlr_/)
  assert.deepEqual(said(), ['asked'])

  const other = fake.offer(await aProgram(`return 1`), { workflow: { slug: 'other', version: 1 } })
  const ending = await fake.ending(other)
  assert.ok(ending.how === 'unready' && ending.blame === 'host')
  assert.match(ending.reason, /pre-run.*not this one/)
  assert.deepEqual(kindsOf(other), ['end'])
})

test('credentials that a hook prints are neither in the log nor in the reason that others read', async (context) => {
  const { fake, agent } = await withHooks(context, {
    'pre-run': `echo '+ curl -H Authorization: Bearer sesame-opens-1'; echo 'https://ann:sesame-opens-2@vault says no'; exit 1`,
  })
  const placement = fake.offer(await aProgram(`return 1`))
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'unready')
  assert.match(ending.reason, /https:\/\/\[credential\]@vault says no/)
  assert.doesNotMatch(JSON.stringify([ending, agent.lines]), /sesame/)
})

test('of a line that a hook never breaks, its agent logs so much and reads the rest', async (context) => {
  const { fake, said } = await withHooks(context, { 'pre-run': `head -c 20000000 /dev/zero | tr '\\0' x` })
  const placement = fake.offer(await aProgram(`return 1`))
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
  assert.deepEqual(said(), Array(100).fill('x'.repeat(1000)))
})

test('post-run is told the ending, also of a program that was killed', async (context) => {
  const { fake, seen, agent } = await withHooks(context, {
    'post-run': `cat > $SEEN/$WINDLASS_RUN_ID.part; mv $SEEN/$WINDLASS_RUN_ID.part $SEEN/$WINDLASS_RUN_ID; exit 5`,
  })
  const returns = fake.offer(await aProgram(`return 'a payload'`))
  const killed = fake.offer(await aProgram(`console.log(1); process.kill(process.pid, 'SIGKILL')`))
  const endingGiven = async (run: string) => {
    await until('post-run was there', () => existsSync(seen(run)))
    return JSON.parse(await readFile(seen(run), 'utf8')).ending
  }
  assert.deepEqual(await endingGiven(returns.offer.run), { how: 'returned' })
  assert.deepEqual(await endingGiven(killed.offer.run), { how: 'killed', signal: 'SIGKILL' })
  assert.deepEqual(
    await fake.ending(returns),
    { how: 'returned', outputText: '"a payload"' },
    'its exit code changes nothing',
  )
  await until('the log says it', () =>
    agent.lines.some(({ name, hook }) => name === 'hook.failed' && hook === 'post-run'),
  )
})

test('a hook that does not come to an end is killed with its children', async (context) => {
  const { fake, seen } = await withHooks(
    context,
    { 'pre-run': `sleep 1000 & echo $! > $SEEN/child; echo $$ > $SEEN/pid; wait` },
    { WINDLASS_AGENT_HOOK_MS: '300' },
  )
  const placement = fake.offer(await aProgram(`return 1`))
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'unready')
  assert.match(ending.reason, /more than 300 ms/)
  for (const name of ['pid', 'child']) {
    const pid = Number(await readFile(seen(name), 'utf8'))
    await untilGone(name, pid)
  }
})

test('what a hook leaves running ends with it', async (context) => {
  const { fake, seen } = await withHooks(context, { 'pre-run': `sleep 1000 & echo $! > $SEEN/child; exit 0` })
  const placement = fake.offer(await aProgram(`return 1`))
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '1' })
  const pid = Number(await readFile(seen('child'), 'utf8'))
  await untilGone('its child', pid)
})

test('a run that is cancelled does not wait for its pre-run', async (context) => {
  const { fake, seen } = await withHooks(context, { 'pre-run': `echo $$ > $SEEN/pid; sleep 1000` })
  const placement = fake.offer(await aProgram(`return 1`))
  await untilPolled('it is asked', () => existsSync(seen('pid')))
  const { run, epoch } = placement.offer
  fake.send({ t: 'cancel', runs: [{ run, epoch, why: 'cancelled', reason: 'enough', graceMs: 100 }] })
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
})

test('hooks that others could change are not executed, and the agent takes no work', async (context) => {
  const { fake, agent, hooksFolder, seen } = await withHooks(context, { 'pre-run': `touch $SEEN/executed` })
  await chmod(path.join(hooksFolder, 'pre-run'), 0o777)
  const placement = fake.offer(await aProgram(`console.log(1); return 1`))
  const failed = await until('it says so', () =>
    agent.lines.find(({ name, check }) => name === 'check.fails' && check === 'hooks'),
  )
  assert.match(String(failed.reason), /pre-run can be written by others.*chmod go-w/)
  assert.equal(existsSync(seen('executed')), false)
  assert.deepEqual(linesOf(placement), [])
  await chmod(path.join(hooksFolder, 'pre-run'), 0o644)
  await until('it says what else is wrong', () => agent.lines.some(({ reason }) => /chmod u\+x/.test(String(reason))))
  // Taken before the look at the hooks, or not at all; in neither case it has begun.
  assert.deepEqual(linesOf(placement), [])
  assert.ok([undefined, 'unready'].includes(endingOf(placement)?.how))
  await rm(path.join(hooksFolder, 'pre-run'))
  await until('it is mended', () => agent.lines.some(({ name, check }) => name === 'check.works' && check === 'hooks'))
  const next = fake.offer(await aProgram(`return 2`))
  assert.deepEqual(await fake.ending(next), { how: 'returned', outputText: '2' })
})

test('a stop does not wait for a pre-claim that takes its time', async (context) => {
  const { agent, seen } = await withHooks(context, { 'pre-claim': `echo $$ > $SEEN/pid; sleep 1000` })
  await untilPolled('it is asked', () => existsSync(seen('pid')))
  agent.stop()
  await agent.done
  const pid = Number(await readFile(seen('pid'), 'utf8'))
  await untilGone('it', pid)
  assert.ok(!agent.lines.some(({ reason }) => /more than 30000 ms/.test(String(reason))))
})

test('a run that has not begun when its agent is stopped goes elsewhere at once', async (context) => {
  const { fake, agent, seen } = await withHooks(context, { 'pre-run': `touch $SEEN/asked; sleep 600` })
  const placement = fake.offer(await aProgram(`return 1`))
  await untilPolled('the hook is asked', () => existsSync(seen('asked')))
  agent.stop()
  const ending = await fake.ending(placement)
  assert.equal(ending.how, 'unready')
  assert.ok(!kindsOf(placement).includes('start'))
  assert.equal(await agent.done, 0)
})
