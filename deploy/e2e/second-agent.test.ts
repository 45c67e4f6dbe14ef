// A second machine joins by one command, and what a person does at a terminal, through the real CLI.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { fileInstance } from './_kit/file-instance.ts'
import { makeHome, nothingIsLeft } from './_kit/instance.ts'
import { deploy, ended, hasSaid, programFiles, trigger } from './_kit/runs.ts'
import { watchCli, type Watched } from './_kit/start-process.ts'

const { current } = fileInstance({ programs: ['healthy', 'misbehaves', 'listens'] })

/** As a CI would: the service is named by the environment. */
function windlass(...args: string[]): Watched {
  const { url, apiKey, org } = current().access
  return watchCli(args, { env: { WINDLASS_URL: url, WINDLASS_API_KEY: apiKey, WINDLASS_ORG: org } })
}

function linesOf(cli: Watched): unknown[] {
  return cli
    .stdout()
    .trimEnd()
    .split('\n')
    .map((line): unknown => JSON.parse(line))
}

test('a second agent joins by one command and executes', async () => {
  const { client, access } = current()
  const place = makeHome()
  try {
    await client.pools.create({ name: 'annex' })
    const minted = windlass('--json', 'pools', 'token', 'annex')
    assert.equal(await minted.ended(), 0, minted.stderr())
    const { registrationToken } = JSON.parse(minted.stdout()) as { registrationToken: { token: string } }
    const agent = watchCli([
      'agent',
      'start',
      '--url',
      access.url,
      '--token',
      registrationToken.token,
      '--home',
      place.home,
      '--name',
      'annex-1',
    ])
    await agent.says('agent.started')
    await deploy(client, programFiles('healthy', { slug: 'away', pool: 'annex' }))
    const run = await ended(client, await trigger(client, 'away', {}))
    assert.equal(run.status, 'completed')
    assert.equal(run.runner?.name, 'annex-1')
    assert.equal((await client.runners.list({ pool: 'annex' })).runners[0]?.status, 'online')
    agent.child.kill('SIGTERM')
    assert.equal(await agent.ended(), 0, agent.stderr())
    await nothingIsLeft(place.home)
  } finally {
    place.remove()
  }
})

test('a token serves once, and the second agent is told what to do', async () => {
  const { client, access } = current()
  const { runnerPools } = await client.pools.list({})
  const { registrationToken } = await client.pools.createToken({ pool: runnerPools[0]!.id })
  const places = [makeHome(), makeHome()] as const
  try {
    const [first, other] = places.map(
      ({ home }) =>
        () =>
          watchCli(['agent', 'start', '--url', access.url, '--token', registrationToken.token, '--home', home]),
    ) as [() => Watched, () => Watched]
    const agent = first()
    await agent.says('agent.started')
    const refused = other()
    assert.equal(await refused.ended(), 77)
    assert.match(refused.stderr(), /windlass pools token/)
    agent.child.kill('SIGTERM')
    assert.equal(await agent.ended(), 0)
  } finally {
    for (const place of places) place.remove()
  }
})

test('`windlass run` answers with the value on stdout and by its exit code', async () => {
  const done = windlass('run', 'healthy', '--input', '{"takesMs":0}')
  assert.equal(await done.ended(), 0, done.stderr())
  assert.equal((JSON.parse(done.stdout()) as { attempt: number }).attempt, 1)
  assert.match(done.stderr(), /completed/)

  const failed = windlass('run', 'misbehaves', '--input', '{"how":"throw"}')
  assert.equal(await failed.ended(), 1)
  assert.equal(failed.stdout(), '')
  assert.match(failed.stderr(), /cannot go on in attempt 1/)
})

test('`windlass run` tells a wrong input and an unknown workflow from a failure', async () => {
  const wrong = windlass('run', 'misbehaves', '--input', '{"how":"nicely"}')
  assert.equal(await wrong.ended(), 2, wrong.stderr())
  assert.match(wrong.stderr(), /input\.how|how/)
  const unknown = windlass('run', 'no-such-thing')
  assert.equal(await unknown.ended(), 4, unknown.stderr())
  assert.match(unknown.stderr(), /no-such-thing/)
})

test('`windlass run` of a run that is cancelled meanwhile exits with 3', async () => {
  const { client } = current()
  const running = windlass('run', 'listens', '--input', '{"tag":"x"}', '--logs')
  await running.says('begun x')
  const id = /run_[0-9a-z]{26}/.exec(running.stderr())?.[0]
  assert.ok(id)
  const cancel = windlass('runs', 'cancel', id)
  assert.equal(await cancel.ended(), 0, cancel.stderr())
  assert.equal(await running.ended(), 3, running.stderr())
  assert.match(running.stderr(), /tidied up x/)
  assert.equal((await ended(client, id)).status, 'cancelled')
})

test('`windlass runs logs -f` shows what a program prints while it prints, and ends with the run', async () => {
  const { client } = current()
  const id = await trigger(client, 'listens', { tag: 'y' })
  await hasSaid(client, id, 'log.stdout', 'begun y')
  const logs = windlass('runs', 'logs', '-f', id)
  await logs.prints('begun y')
  await client.runs.cancel({ run: id })
  assert.equal(await logs.ended(), 3, logs.stderr())
  assert.deepEqual(logs.stdout().trimEnd().split('\n'), ['begun y', 'tidied up y'])
})

test('with --json every line of stdout is JSON: the events, and at last the run', async () => {
  const cli = windlass('--json', 'run', 'healthy', '--input', '{"takesMs":0}')
  assert.equal(await cli.ended(), 0, cli.stderr())
  const lines = linesOf(cli)
  const { run } = lines.at(-1) as { run: Run }
  assert.equal(run.status, 'completed')
  const events = lines.slice(0, -1) as RunEvent[]
  assert.deepEqual(
    events.map((event) => event.type),
    ['run.queued', 'run.pending', 'run.running', 'phase', 'output', 'run.completed'],
  )

  const list = windlass('--json', 'runs', 'list', '--limit', '1')
  assert.equal(await list.ended(), 0, list.stderr())
  assert.equal((JSON.parse(list.stdout()) as { runs: Run[] }).runs[0]?.id, run.id)
})
