// The command line as a person uses it in the first hour, and as a second machine joins by it, against an installation
// that is really there.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { PROJECT } from '../tools/source-files.ts'
import { fileInstance } from './_kit/file-instance.ts'
import { makeHome, nothingIsLeft } from './_kit/instance.ts'
import { deploy, ended, hasSaid, programFiles, trigger } from './_kit/runs.ts'
import { watchCli, type Watched } from './_kit/start-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'windlass-e2e-cli-'))
const INPUT = '{"names":["Ada"]}'
const env = { WINDLASS_SECRET_KEY: randomBytes(32).toString('base64') }
const { current } = fileInstance({ programs: ['healthy', 'misbehaves', 'listens'], env })

after(() => rmSync(folder, { recursive: true, force: true }))

/** The local instance is found by its home, as `npx windlass` finds it. */
function cli(...args: string[]): Watched {
  return watchCli(args, { cwd: folder, env: { WINDLASS_HOME: current().home, HOME: folder } })
}

async function ok(...args: string[]): Promise<string> {
  const started = cli(...args)
  assert.equal(await started.ended(), 0, `windlass ${args.join(' ')}\n${started.stderr()}`)
  return started.stdout()
}

test('what `init` makes is checked by an editor, deployed and run as it says itself', async () => {
  assert.match(await ok('init', 'hello'), /^Made hello in /)
  const quiet = ['--no-audit', '--no-fund', '--registry', 'http://127.0.0.1:9']
  const installed = spawnSync('npm', ['install', ...quiet], { cwd: join(folder, 'hello'), encoding: 'utf8' })
  assert.equal(installed.status, 0, installed.stderr)
  const checked = spawnSync(join(PROJECT, 'node_modules/.bin/tsc'), ['-p', join(folder, 'hello')], { encoding: 'utf8' })
  assert.deepEqual([checked.status, checked.stdout], [0, ''])
  assert.match(await ok('deploy', 'hello'), /^Deployed hello, version 1 \(5 files/)
  assert.match(await ok('run', 'hello', '--input', INPUT), /"Hello, Ada! It is /)
  assert.match(await ok('logs', 'hello', '-f'), /▸ greet[^]*│ greeted Ada[^]*completed\n$/)
  const again = cli('init', 'hello')
  assert.equal(await again.ended(), 2)
  assert.match(again.stderr(), /is not empty[^]*Next: windlass init/)
})

test('a save is deployed and its run executes the new code', async () => {
  const file = join(folder, 'hello/index.ts')
  const dev = cli('dev', 'hello', '--input', INPUT)
  await dev.says('is deployed as it is here; watching')
  await dev.prints('Hello, Ada!')
  writeFileSync(file, readFileSync(file, 'utf8').replace('Hello, ', 'Good morning, '))
  await dev.prints('Good morning, Ada!')
  dev.child.kill('SIGINT')
  assert.equal(await dev.ended(), 130)
  assert.match(dev.stderr(), /✔ hello, version 2, in /)
})

test('variables and secrets that are set reach the next run, and the audit log says who set them', async () => {
  const program = `export const run = () => ({ region: process.env.REGION, length: process.env.TOKEN?.length })\n`
  writeFileSync(join(folder, 'hello/index.ts'), program)
  writeFileSync(join(folder, 'token'), 'hunter2')
  await ok('deploy', 'hello')
  await ok('env', 'create', 'staging')
  await ok('vars', 'set', 'REGION=eu', '--environment', 'staging')
  await ok('secrets', 'set', 'TOKEN', '--file', 'token', '--environment', 'staging')
  assert.deepEqual(JSON.parse(await ok('run', 'hello', '-e', 'staging')), { region: 'eu', length: 7 })
  const audit = await ok('audit', 'list', '--created-after', '1h', '--action', 'secrets.*,variables.*')
  assert.match(audit, /local \(session\) {2}secrets\.set {2}TOKEN[^]*local \(key\) {2}variables\.set {2}REGION/)
  assert.doesNotMatch(audit, /hunter2/)
})

test('a key that is made here serves elsewhere by a profile, until it is revoked', async () => {
  const key = (await ok('keys', 'create', 'ci', '--role', 'member')).trim()
  await ok('profiles', 'add', 'ci', '--url', current().access.url, '--api-key', key)
  assert.match(await ok('--profile', 'ci', 'whoami'), /from profile ci\norg +default[^]*key +ci, member/)
  const refused = cli('--profile', 'ci', 'keys', 'create', 'more', '--role', 'member')
  assert.equal(await refused.ended(), 4)
  assert.match(refused.stderr(), /Next: `windlass admin sessions create/)
  const { apiKeys } = JSON.parse(await ok('keys', 'list', '--json')) as { apiKeys: { id: string; name: string }[] }
  await ok('keys', 'revoke', apiKeys.find(({ name }) => name === 'ci')!.id)
  assert.equal(await cli('--profile', 'ci', 'runs', 'list').ended(), 4)
})

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
  const temp = makeHome()
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
      temp.home,
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
    await nothingIsLeft(temp.home)
  } finally {
    temp.remove()
  }
})

test('a token serves once, and the second agent is told what to do', async () => {
  const { client, access } = current()
  const { runnerPools } = await client.pools.list({})
  const { registrationToken } = await client.pools.createToken({ pool: runnerPools[0]!.id })
  const temps = [makeHome(), makeHome()] as const
  try {
    const [first, other] = temps.map(
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
    for (const temp of temps) temp.remove()
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
