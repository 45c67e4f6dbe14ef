// The command line as a person uses it in the first hour, against an installation that is really there.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { PROJECT } from '../tools/source-files.ts'
import { type Instance, makeHome, startInstance } from './_kit/instance.ts'
import { watchCli, type Watched } from './_kit/start-process.ts'

const place = makeHome()
const folder = mkdtempSync(join(tmpdir(), 'windlass-e2e-cli-'))
const INPUT = '{"names":["Ada"]}'
let instance: Instance

before(async () => {
  const env = { WINDLASS_START_EXAMPLE: 'false', WINDLASS_SECRET_KEY: randomBytes(32).toString('base64') }
  instance = await startInstance({ home: place.home, env })
})

after(async () => {
  await instance.stop()
  place.remove()
  rmSync(folder, { recursive: true, force: true })
})

/** The local instance is found by its home, as `npx windlass` finds it. */
function cli(...args: string[]): Watched {
  return watchCli(args, { cwd: folder, env: { WINDLASS_HOME: place.home, HOME: folder } })
}

async function ok(...args: string[]): Promise<string> {
  const started = cli(...args)
  assert.equal(await started.ended(60_000), 0, `windlass ${args.join(' ')}\n${started.stderr()}`)
  return started.stdout()
}

test('what `init` makes is checked by an editor, deployed and run as it says itself', async () => {
  assert.match(await ok('init', 'hello'), /^Made hello in /)
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
  const audit = await ok('audit', 'list', '--since', '1h', '--action', 'secrets.*,variables.*')
  assert.match(audit, /local \(session\) {2}secrets\.set {2}TOKEN[^]*local \(key\) {2}variables\.set {2}REGION/)
  assert.doesNotMatch(audit, /hunter2/)
})

test('a key that is made here serves elsewhere by a profile, until it is revoked', async () => {
  const key = (await ok('keys', 'create', 'ci', '--role', 'member')).trim()
  await ok('profiles', 'add', 'ci', '--url', instance.access.url, '--api-key', key)
  assert.match(await ok('--profile', 'ci', 'whoami'), /from profile ci\norg +default[^]*key +ci, member/)
  const refused = cli('--profile', 'ci', 'keys', 'create', 'more', '--role', 'member')
  assert.equal(await refused.ended(), 4)
  assert.match(refused.stderr(), /Next: `windlass admin sessions create/)
  const { apiKeys } = JSON.parse(await ok('keys', 'list', '--json')) as { apiKeys: { id: string; name: string }[] }
  await ok('keys', 'revoke', apiKeys.find(({ name }) => name === 'ci')!.id)
  assert.equal(await cli('--profile', 'ci', 'runs', 'list').ended(), 4)
})
