// A machine that nobody has prepared becomes an agent by the commands of the README, and is what it was before when they are undone.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { chownSync, mkdirSync, readdirSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { ensurePool } from '../_kit/agents.ts'
import { type CleanMachine, makeMachine, noMachine } from '../_kit/clean-machine.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { type Instance, makeHome } from '../_kit/instance.ts'
import { deploy, ended, programFiles, trigger } from '../_kit/runs.ts'
import { watchCli } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const POOL = 'field'
const WORK_MS = 4000
const skip = noMachine()
const temp = makeHome()
let machine: CleanMachine
let current: () => Instance
if (!skip) {
  ;({ current } = fileInstance({ programs: [], env: { WINDLASS_HOST: '0.0.0.0' } }))
  before(async () => void (machine = await makeMachine(temp.home)), { timeout: 960_000 })
}

after(() => {
  machine?.remove()
  temp.remove()
})

async function aToken(): Promise<string> {
  const { client } = current()
  const { registrationToken } = await client.pools.createToken({ pool: await ensurePool(client, POOL) })
  return registrationToken.token
}

function portOf({ url }: { url: string }): number {
  return Number(new URL(url).port)
}

function install(options: string, port = portOf(current().access)): string {
  return `curl -fsSL http://${machine.address}:${port}/install.sh | sh -s -- --allow-http ${options}`
}

/** A command of the CLI, where the service is operated. */
async function windlass(...args: string[]): Promise<{ code: number | string; said: string }> {
  const { url, apiKey, org } = current().access
  const cli = watchCli(args, { env: { WINDLASS_URL: url, WINDLASS_API_KEY: apiKey, WINDLASS_ORG: org } })
  return { code: await cli.ended(90_000), said: cli.stdout() + cli.stderr() }
}

async function online(name: string): Promise<string> {
  const look = async () => {
    const { runners } = await current().client.runners.list({ pool: POOL })
    return runners.find((runner) => runner.name === name && runner.status === 'online')?.id
  }
  return until(`${name} is online`, look, { ms: 30_000 })
}

/** Files that are there now or were there before, and not both. */
function changed(before: string[]): string[] {
  const now = machine.files()
  const [had, has] = [new Set(before), new Set(now)]
  return [...now.filter((file) => !had.has(file)), ...before.filter((file) => !has.has(file))]
}

/** What the script told to do next. */
function valueIn(stdout: string, label: string): string {
  const found = new RegExp(`${label}: (.+)$`, 'm').exec(stdout)?.[1]
  assert.ok(found, stdout)
  return found
}

test('install, run, drain, uninstall: by the documented commands alone, and nothing is left', { skip }, async () => {
  const { client } = current()
  const routes = (await machine.types('cat /proc/net/route')).stdout.split('\n').slice(1)
  assert.ok(!routes.some((route) => route.split('\t')[1] === '00000000'), 'the machine has a way to the internet')
  const untouched = machine.files()
  const token = await aToken()

  const installed = await machine.types(install(`--token ${token} --name clean --labels lab --slots 2`))
  assert.equal(installed.code, 0, installed.stderr)
  assert.match(installed.stdout, /no systemd here/)
  const found = spawnSync('grep', ['-rlsF', '--exclude-dir=proc', '--exclude-dir=dev', token, machine.root])
  assert.equal(found.stdout.toString(), '', 'the token was kept')
  const agent = machine.starts(valueIn(installed.stdout, 'Start it by'))
  const id = await online('clean')

  await deploy(client, programFiles('healthy', { slug: 'afield', pool: POOL, timeout: '1m' }))
  const run = await ended(client, await trigger(client, 'afield', {}))
  assert.equal(run.status, 'completed')
  assert.equal(run.runner?.name, 'clean')
  const { runner } = await client.runners.get({ runner: id })
  assert.deepEqual([...runner.labels], ['lab'])
  assert.equal(runner.isolation?.user, 'own')
  assert.equal((await machine.types('windlass agent status')).code, 0)

  const last = await trigger(client, 'afield', { takesMs: WORK_MS })
  await until('it executes', async () => (await client.runs.get({ run: last })).run.status === 'running', {
    ms: 20_000,
  })
  const drained = await windlass('runners', 'drain', 'clean', '--wait', '--deadline', '1m')
  assert.equal(drained.code, 0, drained.said)
  assert.equal((await client.runs.get({ run: last })).run.status, 'completed')
  const later = await trigger(client, 'afield', {})

  const removed = await machine.types(valueIn(installed.stdout, 'Remove it by'))
  assert.equal(removed.code, 0, removed.stderr)
  assert.equal((await agent.ended).code, 0, agent.soFar())
  assert.deepEqual(machine.processes(), [])
  assert.deepEqual(changed(untouched), [])
  assert.equal((await client.runs.get({ run: later })).run.status, 'queued')
  await client.runs.cancel({ run: later })
  const forgotten = await windlass(...valueIn(removed.stdout, 'To forget it there').split(' ').slice(1), '--yes')
  assert.equal(forgotten.code, 0, forgotten.said)
})

test('what goes wrong leaves nothing behind', { skip }, async () => {
  const untouched = machine.files()
  const refused = await machine.types(install('--token wlr_nobody'))
  assert.equal(refused.code, 1, refused.stdout)
  assert.match(refused.stderr, /Registration was refused.*windlass pools token/)

  const meddler = await meddling((name, bytes) => (name.endsWith('.gz') ? Buffer.concat([bytes, NOTHING]) : bytes))
  const token = await aToken()
  try {
    const changed = await machine.types(install(`--token ${token}`, meddler.port))
    assert.equal(changed.code, 1)
    assert.match(changed.stderr, /is not what SHA256SUMS says/)
  } finally {
    meddler.close()
  }
  for (const [options, sentence] of [
    ['', /A registration token is needed/],
    ['--upgrade', /no agent in \/opt\/windlass-agent/],
    ['--token x --slots many', /--slots must be a number/],
    ['--token x --name "a$(id)\\""', /--name must not/],
    ['--token x --isolation bubblewrap', /install the package bubblewrap/],
    ['--tokn x', /--tokn is no option/],
  ] as const) {
    const typed = await machine.types(install(options))
    assert.equal(typed.code, 1, options)
    assert.match(typed.stderr, sentence)
  }
  assert.deepEqual(changed(untouched), [])
})

test(
  'an installation that ends before its registration is answered goes on with the same token',
  { skip },
  async () => {
    const untouched = machine.files()
    const token = await aToken()
    const meddler = await meddling((_name, bytes) => bytes)
    try {
      const script = install(`--token ${token} --name again`, meddler.port)
      const isAsking = '[ -s /var/lib/windlass-agent/first-key.json ]'
      await machine.types(
        `setsid sh -c '${script}' & until ${isAsking}; do sleep 0.1; done; kill -s TERM -- -$!; wait $!`,
      )
      assert.ok(machine.files().some((file) => file.includes('first-key.json')))
    } finally {
      meddler.close()
    }
    const installed = await machine.types(install(`--token ${token} --name again`))
    assert.equal(installed.code, 0, installed.stderr)
    const removed = await machine.types(valueIn(installed.stdout, 'Remove it by'))
    assert.equal(removed.code, 0, removed.stderr)
    assert.deepEqual(changed(untouched), [])
  },
)

test('an upgrade keeps identity and settings, and a program that runs keeps what it is made of', { skip }, async () => {
  const untouched = machine.files()
  const installed = await machine.types(install(`--token ${await aToken()} --name steady --slots 1`))
  assert.equal(installed.code, 0, installed.stderr)
  const id = () => machine.types('cat /var/lib/windlass-agent/identity.json')
  const known = (await id()).stdout
  const agent = machine.starts(valueIn(installed.stdout, 'Start it by'))
  await online('steady')
  const versions = () => readdirSync(join(machine.root, 'opt/windlass-agent/versions'))
  const [old] = versions()

  // Another archive of the same agent is another version, as far as the script can tell.
  const meddler = await meddling(otherwisePacked)
  try {
    const during = await machine.types(install('--upgrade --slots 2', meddler.port))
    assert.equal(during.code, 0, during.stderr)
    assert.match(during.stdout, /goes on with its old version/)
    assert.equal(versions().length, 2)
    await machine.types('kill $(sed "s/.*pid.:\\([0-9]*\\).*/\\1/" /var/lib/windlass-agent/agent.lock)')
    assert.equal((await agent.ended).code, 0, agent.soFar())
    const afterwards = await machine.types(install('--upgrade', meddler.port))
    assert.equal(afterwards.code, 0, afterwards.stderr)
    assert.equal(versions().length, 1)
    assert.ok(!versions().includes(old ?? ''))
  } finally {
    meddler.close()
  }
  assert.equal((await id()).stdout, known)
  const { stdout: settings } = await machine.types('windlass agent config show --json')
  assert.match(settings, /"WINDLASS_AGENT_SLOTS"[^}]*2/)
  assert.match(settings, /"steady"/)

  const uninstalled = await machine.types('windlass agent uninstall --keep-state')
  assert.equal(uninstalled.code, 0, uninstalled.stderr)
  const again = await machine.types(install(''))
  assert.equal(again.code, 0, again.stderr)
  assert.equal((await id()).stdout, known)
  assert.equal((await machine.types(install('--uninstall'))).code, 0)
  assert.deepEqual(changed(untouched), [])
})

test('whoever is not root installs it for himself', { skip }, async () => {
  const uid = 4321
  const home = join(machine.root, `home/${uid}`)
  mkdirSync(home)
  chownSync(home, uid, uid)
  const untouched = machine.files()
  const installed = await machine.types(install(`--token ${await aToken()} --name mine`), { uid })
  assert.equal(installed.code, 0, installed.stderr)
  assert.match(installed.stdout, new RegExp(`/home/${uid}/.local/share/windlass-agent/versions/`))
  const shown = await machine.types('.local/bin/windlass agent config show', { uid })
  assert.match(shown.stdout, /^WINDLASS_AGENT_NAME=mine$/m)
  const removed = await machine.types(valueIn(installed.stdout, 'Remove it by'), { uid })
  assert.equal(removed.code, 0, removed.stderr)
  assert.deepEqual(changed(untouched), [])
})

/** A gzip stream may be followed by another one; of this one nothing comes. */
const NOTHING = gzipSync('')

type Change = (name: string, bytes: Buffer, all: (name: string) => Promise<Buffer>) => Promise<Buffer> | Buffer

/** Somebody on the way to the coordinator, who changes what it hands out. */
async function meddling(change: Change): Promise<{ port: number; close(): void }> {
  const pass = async (path: string, host: string) => {
    const options = { port: portOf(current().access), path, headers: { host } }
    return new Promise<Buffer>((resolve, reject) => {
      request(options, (answer) => void buffer(answer).then(resolve, reject))
        .once('error', reject)
        .end()
    })
  }
  const server: Server = createServer(({ method, url = '', headers: { host = '' } }, response) => {
    // Answers of the API do not arrive.
    if (method !== 'GET') {
      response.destroy()
      return
    }
    const name = url.replace('/downloads/', '')
    const changed = pass(url, host).then((bytes) => change(name, bytes, (other) => pass(`/downloads/${other}`, host)))
    changed.then(
      (bytes) => response.end(bytes),
      (error: Error) => response.destroy(error),
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve))
  return { port: (server.address() as AddressInfo).port, close: () => server.close().closeAllConnections() }
}

/** The archive with something more at its end, and the sum of that. */
async function otherwisePacked(name: string, bytes: Buffer, all: (name: string) => Promise<Buffer>): Promise<Buffer> {
  if (name.endsWith('.tar.gz')) return Buffer.concat([bytes, NOTHING])
  if (name !== 'SHA256SUMS') return bytes
  const lines = bytes.toString().split('\n')
  const whole = lines.find((line) => line.endsWith('.tar.gz'))?.split('  ')[1] ?? ''
  const sum = createHash('sha256')
    .update(await all(whole))
    .update(NOTHING)
    .digest('hex')
  return Buffer.from(lines.map((line) => (line.endsWith(whole) ? `${sum}  ${whole}` : line)).join('\n'))
}
