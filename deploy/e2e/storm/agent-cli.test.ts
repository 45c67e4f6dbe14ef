// What whoever keeps a machine asks of the agent on it: status, doctor, logs, settings, and a bundle for those who help from afar.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { networkInterfaces, tmpdir } from 'node:os'
import path from 'node:path'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinatorOfItsOwn } from '../../../coordinator/test/_kit/coordinator.ts'
import type { TestCoordinator } from '../../../coordinator/test/_kit/coordinator.ts'
import { runCli } from '../../../sdk/test/_kit/run-cli.ts'
import { watchCli } from '../_kit/start-process.ts'
import type { Watched } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

interface Finding {
  check: string
  verdict: string
  message: string
  fix: string | null
}

const folder = mkdtempSync(path.join(tmpdir(), 'windlass-e2e-agent-cli-'))
const home = path.join(folder, 'state')
const logFile = path.join(folder, 'agent.log')
const settingsFile = path.join(folder, '.config/windlass-agent/agent.env')
let c: TestCoordinator
let agent: Watched
let token: string

/** As on the machine itself, where only the settings file says which agent there is. */
const windlass = (args: string[], env: Record<string, string> = {}) =>
  runCli(['agent', ...args], { env: { HOME: folder, ...env }, cwd: folder })

async function findings(args: string[] = [], env: Record<string, string> = {}) {
  const { code, stdout, stderr } = await windlass(['doctor', '--json', ...args], env)
  assert.notEqual(stdout, '', stderr)
  const answer = JSON.parse(stdout) as { isFine: boolean; findings: Finding[] }
  assert.equal(code, answer.isFine ? 0 : 1)
  return Object.fromEntries(answer.findings.map((finding) => [finding.check, finding]))
}

function startAgent(): Watched {
  return watchCli(['agent', 'start'], { env: { HOME: folder, WINDLASS_AGENT_TOKEN: token } })
}

const isConnected = () =>
  existsSync(path.join(home, 'status.json')) &&
  readFileSync(path.join(home, 'status.json'), 'utf8').includes('"state": "connected"')

before(async () => {
  c = await aCoordinatorOfItsOwn()
  const made = { org: c.org, name: 'fleet', settings: { slots: 3 } }
  const { runnerPool } = await c.call(ops.pools.create, made)
  token = (await c.call(ops.pools.createToken, { pool: runnerPool.id })).registrationToken.token
  const settings = {
    WINDLASS_URL: c.url,
    WINDLASS_AGENT_HOME: home,
    WINDLASS_AGENT_NAME: 'build-1',
    WINDLASS_AGENT_LOG_FILE: logFile,
    WINDLASS_AGENT_LABELS: 'eu,ssd',
    // Other users may not pass this folder, which the doctor would not be content with.
    WINDLASS_AGENT_RUN_UIDS: 'off',
  }
  mkdirSync(path.dirname(settingsFile), { recursive: true })
  const lines = Object.entries(settings).map(([name, value]) => `${name}=${value}\n`)
  writeFileSync(settingsFile, lines.join(''))
})

after(async () => {
  agent?.child.kill('SIGKILL')
  await agent?.ended()
  await c.stop()
  rmSync(folder, { recursive: true, force: true })
})

test('before the first start status and doctor say what is missing, and what is well', async () => {
  const { code, stdout, stderr } = await windlass(['status'])
  assert.equal(code, 1)
  assert.match(stdout, /^agent +was never started with this folder$/m)
  assert.match(stderr, /Next: windlass pools token/)
  const { identity, daemon, state, dns, tcp, http, version, clock, websocket } = await findings()
  for (const one of [state, dns, tcp, http, version, clock]) assert.equal(one?.verdict, 'ok', JSON.stringify(one))
  assert.equal(identity?.verdict, 'warn')
  assert.match(identity?.fix ?? '', /windlass pools token/)
  assert.equal(daemon?.verdict, 'warn')
  assert.equal(websocket?.verdict, 'skipped')
  assert.match((await windlass(['logs'])).stdout, /^$/)
})

test('an agent that runs is found by its settings file alone', async () => {
  agent = startAgent()
  await until('the connection of the agent', isConnected, { ms: 60_000, more: () => agent.stderr() })
  const { code, stdout } = await windlass(['status'])
  assert.equal(code, 0, stdout)
  assert.match(stdout, /^agent +runs as process \d+$/m)
  assert.match(stdout, /^runner +build-1 \(rnr_\w{26}\) in pool fleet of default$/m)
  assert.match(stdout, new RegExp(`^coordinator +${c.url}, connected since `, 'm'))
  assert.match(stdout, /^slots +0 of 3 in use$/m)
  const { status } = JSON.parse((await windlass(['status', '--json'])).stdout) as { status: { labels: string[] } }
  assert.deepEqual(status.labels, ['eu', 'ssd'])
})

test('the doctor finds nothing in its way, and leaves it alone', async () => {
  const { stdout: before } = await windlass(['status', '--json'])
  const all = await findings()
  const bad = Object.values(all).filter(({ verdict }) => verdict === 'fail')
  assert.deepEqual(bad, [])
  assert.equal(all['websocket']?.verdict, 'ok', all['websocket']?.message)
  assert.match(all['websocket']?.message ?? '', /rnr_/)
  assert.equal(all['daemon']?.verdict, 'ok')
  assert.equal(all['ready']?.message, 'it takes work')
  assert.equal(all['isolation']?.fix === null, all['isolation']?.verdict === 'ok')
  const since = (text: string) =>
    (JSON.parse(text) as { status: { connection: { since: number } } }).status.connection.since
  assert.equal(since((await windlass(['status', '--json'])).stdout), since(before))
  const { stdout, code } = await windlass(['doctor'])
  assert.equal(code, 0)
  assert.match(stdout, /^ok +websocket +the upgrade passes/m)
  assert.match(stdout, /^The agent can work here/m)
})

test('the doctor names the setting where there is no way to the coordinator, and where settings are wrong', async () => {
  const { dns, tcp, tls, http, clock } = await findings(['--url', 'http://127.0.0.1:1'])
  assert.equal(dns?.verdict, 'ok')
  assert.equal(tcp?.verdict, 'fail')
  assert.match(tcp?.fix ?? '', /WINDLASS_URL/)
  for (const one of [tls, http, clock]) assert.equal(one?.verdict, 'skipped')
  const { settings } = await findings([], { WINDLASS_AGENT_SLOTZ: '3' })
  assert.match(settings?.message ?? '', /WINDLASS_AGENT_SLOTZ is no setting of the agent, did you mean/)
})

test('the doctor accepts plain http with another machine when the agent does', async (t) => {
  const outside = Object.values(networkInterfaces())
    .flat()
    .find((one) => one?.family === 'IPv4' && !one.internal)
  if (!outside) return t.skip('it needs an address of this machine that is not loopback')
  const server = createServer((socket) => socket.destroy()).listen(0, outside.address)
  t.after(() => server.close())
  await once(server, 'listening')
  const url = `http://${outside.address}:${(server.address() as AddressInfo).port}`
  const asked = await findings(['--url', url])
  assert.equal(asked['tls']?.verdict, 'fail', JSON.stringify(asked['tls']))
  const allowed = await findings(['--url', url, '--allow-http'])
  assert.equal(allowed['tls']?.verdict, 'warn', JSON.stringify(allowed['tls']))
})

test('a key that others may read, and a disk without room, are in the way', async () => {
  execFileSync('chmod', ['644', path.join(home, 'identity.json')])
  const { identity } = await findings()
  assert.match(identity?.fix ?? '', /^chmod 600 /)
  execFileSync('chmod', ['600', path.join(home, 'identity.json')])
  const { disk } = await findings([], { WINDLASS_AGENT_DISK_RESERVE_MB: '1048576' })
  assert.equal(disk?.verdict, 'fail')
  assert.match(disk?.fix ?? '', /make room/)
})

test('settings are told with who says them: file, environment, pool, default', async () => {
  const { stdout } = await windlass(['config', 'show', '--origin'], { WINDLASS_LOG_LEVEL: 'warn' })
  const rows = Object.fromEntries(stdout.split('\n').map((line) => [line.split('\t')[0], line.split('\t').slice(1)]))
  assert.deepEqual(rows['WINDLASS_AGENT_LABELS'], ['eu,ssd', settingsFile])
  assert.deepEqual(rows['WINDLASS_LOG_LEVEL'], ['warn', 'environment'])
  assert.deepEqual(rows['WINDLASS_AGENT_SLOTS'], ['3', 'pool'])
  assert.equal(rows['WINDLASS_AGENT_WAKE_MS']?.[1], 'default')
  const secret = await windlass(['config', 'show', '--json'], { WINDLASS_AGENT_TOKEN: 'wlr_canary12345' })
  assert.doesNotMatch(secret.stdout, /canary/)
})

test('logs are read from the file that the settings name', async (t) => {
  const all = await windlass(['logs'])
  assert.match(all.stdout, /"name":"agent\.started"/)
  assert.equal((await windlass(['logs', '-n', '1'])).stdout.split('\n').length, 2)
  assert.equal((await windlass(['logs', '--since', '0s'])).stdout, '')
  assert.equal((await windlass(['logs', '-n', 'x'])).code, 2)
  const none = await windlass(['logs'], { WINDLASS_AGENT_CONFIG: 'none', WINDLASS_URL: c.url })
  assert.equal(none.code, 4)
  assert.match(none.stderr, /WINDLASS_AGENT_LOG_FILE/)
  const following = watchCli(['agent', 'logs', '-f'], { env: { HOME: folder } })
  t.after(() => following.child.kill('SIGKILL'))
  await following.prints('agent.started')
  agent.child.kill('SIGTERM')
  await following.prints('agent.asked-to-stop')
  following.child.kill('SIGINT')
  assert.equal(await following.ended(), 130)
  assert.equal(await agent.ended(), 0)
})

test('of an agent that has ended status says what was, and the doctor that it does not run', async () => {
  const { code, stdout, stderr } = await windlass(['status'])
  assert.equal(code, 1)
  assert.match(stdout, /^agent +does not run$/m)
  assert.match(stdout, /^said +.* before it ended/m)
  assert.match(stderr, /Next: systemctl start/)
  assert.equal((await findings())['daemon']?.verdict, 'warn')
})

test('a support bundle holds what helps and no credential, nothing of runs, and is nobody else’s to read', async () => {
  const { privateKey } = JSON.parse(readFileSync(path.join(home, 'identity.json'), 'utf8')) as {
    privateKey: { d: string }
  }
  const canaries = [privateKey.d, token, 'canary-of-a-run', 'canary-in-a-proxy']
  writeFileSync(path.join(home, 'spool', 'canary.log'), 'canary-of-a-run')
  writeFileSync(logFile, `{"at":1,"name":"x","said":"${token} http://user:canary-in-a-proxy@proxy"}\n`, { flag: 'a' })
  const file = path.join(folder, 'bundle.tgz')
  const { code, stdout, stderr } = await windlass(['support-bundle', '-o', file], { WINDLASS_AGENT_TOKEN: token })
  assert.equal(code, 0, stderr)
  assert.equal(stdout, `${file}\n`)
  assert.equal(statSync(file).mode & 0o777, 0o600)
  const names = execFileSync('tar', ['-tzf', file], { encoding: 'utf8' }).trimEnd().split('\n')
  for (const name of [
    'about.json',
    'settings.json',
    'doctor.json',
    'status.json',
    'folders.json',
    'processes.json',
    'agent.log',
  ]) {
    assert.ok(names.includes(`bundle/${name}`), name)
    assert.ok(stderr.includes(name), name)
  }
  const all = execFileSync('tar', ['-xzOf', file], { encoding: 'utf8' })
  for (const canary of canaries) assert.ok(!all.includes(canary), canary)
  assert.match(all, /"name":"agent\.started"/)
  assert.match(all, /"spool": \{\s+"files": [1-9]/)
  const again = await windlass(['support-bundle', '-o', file])
  assert.equal(again.code, 2)
  assert.match(again.stderr, /it is there already/)
})

test('the doctor says of a machine that was revoked that it has to register anew', async () => {
  const { runners } = await c.call(ops.runners.list, { org: c.org })
  await c.call(ops.runners.revoke, { runner: runners[0]?.id ?? '' })
  const { websocket } = await findings()
  assert.equal(websocket?.verdict, 'fail')
  assert.match(websocket?.fix ?? '', /windlass pools token/)
})
