// Agents as they are installed, whose files an upgrade replaces while programs of theirs are there.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { before, test, type TestContext } from 'node:test'
import { aProgram } from '@windlass/agent/test/_kit/bundle.ts'
import { FakeCoordinator, linesOf, REGISTRATION_TOKEN } from '@windlass/agent/test/_kit/fake-coordinator.ts'
import { textIn } from '@windlass/agent/test/_kit/text-in.ts'
import { bundleAgent } from '@windlass/coordinator/downloads/bundle-agent.ts'
import { testRunVariables } from '@windlass/shared/test/_kit/test-run.ts'
import { announce, until, untilPolled } from '@windlass/shared/test/_kit/until.ts'

/** Calls nothing of the runtime before there is a file `go` in its workspace. */
const PROGRAM = `
  const { existsSync } = process.getBuiltinModule('node:fs')
  console.log(String(process.pid))
  while (!existsSync('go')) await new Promise((resolve) => setTimeout(resolve, 20))
  return (await import('windlass')).step('late', () => 'went on')`

type Files = Map<string, string>

let first: Files
let second: Files

before(async () => {
  const work = mkdtempSync(join(tmpdir(), 'windlass-bundle-'))
  first = (await bundleAgent(work)).files
  second = withOtherRuntime(first)
  rmSync(work, { recursive: true })
})

/** Another version of the same agent. */
function withOtherRuntime(files: Files): Files {
  const other = new Map(files).set('lib/runtime/engine.cjs', `${files.get('lib/runtime/engine.cjs')}// Of the second\n`)
  const hash = createHash('sha256')
  for (const name of ['engine.cjs', 'host.cjs', 'windlass.mjs'])
    hash.update(`${name}\0`).update(other.get(`lib/runtime/${name}`)!)
  const [digest, former] = [hash.digest('hex'), files.get('lib/runtime/digest')!]
  for (const [name, text] of other) other.set(name, text.replaceAll(former, digest))
  return other
}

function install(folder: string, files: Files): void {
  rmSync(folder, { recursive: true, force: true })
  for (const [name, text] of files) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), text)
  }
}

async function aHost(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'windlass-installed-'))
  const [home, program] = [join(folder, 'state'), join(folder, 'program')]
  const fake = await FakeCoordinator.start()
  const ends: (() => Promise<unknown>)[] = []
  t.after(async () => {
    for (const end of ends) await end()
    await fake.close()
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
  })
  const start = async () => {
    const env = { PATH: process.env['PATH'], ...testRunVariables(), ...settings(fake.url, home) }
    const args = ['--disable-warning=ExperimentalWarning', join(program, 'lib/windlass.mjs'), 'agent', 'start']
    const child = spawn(process.execPath, args, { env, stdio: ['ignore', 'ignore', 'pipe'] })
    let log = ''
    child.stderr.on('data', (chunk: Buffer) => {
      log += chunk.toString()
      announce()
    })
    const exited = once(child, 'exit')
    void exited.then(announce)
    const kill = async () => {
      child.kill('SIGKILL')
      await exited
    }
    ends.push(kill)
    await until('it has started, or ended', () => log.includes('agent.started') || child.exitCode !== null)
    return { kill, log: () => log, exitCode: () => child.exitCode }
  }
  /** A run whose program is recorded for the next agent. */
  const aRecordedRun = async () => {
    const placement = fake.offer(await aProgram(PROGRAM))
    const pid = Number(await until('its first line', () => linesOf(placement)[0]))
    const { run } = placement.offer
    const of = (name: string) => textIn(join(home, name))
    await untilPolled('it is recorded', () => of('lives').includes(run) && of('spool').includes(` m ${run} `))
    return { placement, goOn: () => writeFileSync(`/proc/${pid}/cwd/go`, '') }
  }
  const runtimes = () => readdirSync(join(home, 'runtime')).filter((name) => /^[0-9a-f]{16}/.test(name))
  return { fake, home, program, start, aRecordedRun, runtimes }
}

function settings(url: string, home: string): Record<string, string> {
  const fixed = { WINDLASS_AGENT_CONFIG: 'none', WINDLASS_AGENT_RUN_UIDS: 'off', WINDLASS_AGENT_SPARES: '0' }
  const own = { WINDLASS_URL: url, WINDLASS_AGENT_HOME: home, WINDLASS_AGENT_TOKEN: REGISTRATION_TOKEN }
  return { ...own, ...fixed, WINDLASS_AGENT_ISOLATION: 'process' }
}

const nameOf = (files: Files) => files.get('lib/runtime/digest')!.slice(0, 16)

test('a program that is taken back after an upgrade goes on with the runtime that it began with', async (t) => {
  const host = await aHost(t)
  install(host.program, first)
  const agent = await host.start()
  const { placement, goOn } = await host.aRecordedRun()
  await agent.kill()
  install(host.program, second)
  const next = await host.start()
  await until('it is taken back', () => next.log().includes('run.taken-back'))
  assert.deepEqual(host.runtimes().toSorted(), [nameOf(first), nameOf(second)].toSorted())
  goOn()
  const ending = await host.fake.ending(placement)
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  await next.kill()
  await host.start()
  assert.deepEqual(host.runtimes(), [nameOf(second)], 'nothing uses the other one any more')
})

test('an agent over which another version is installed starts programs with its own runtime', async (t) => {
  const host = await aHost(t)
  install(host.program, first)
  await host.start()
  for (const name of ['host.cjs', 'engine.cjs', 'windlass.mjs'])
    writeFileSync(join(host.program, 'lib/runtime', name), 'process.exit(1)')
  const ending = await host.fake.ending(host.fake.offer(await aProgram('return 1')))
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
})

test('an agent whose files are replaced before it has looked at the runtime says so and starts nothing', async (t) => {
  const host = await aHost(t)
  install(host.program, first)
  for (const name of ['engine.cjs', 'digest'])
    writeFileSync(join(host.program, 'lib/runtime', name), second.get(`lib/runtime/${name}`)!)
  const agent = await host.start()
  assert.equal(agent.exitCode(), 70, agent.log())
  assert.match(agent.log(), /agent\.refused.*did not come with this agent/)
  assert.deepEqual(host.runtimes(), [])
  // What it had copied before is as good as ever.
  install(host.program, first)
  const before = await host.start()
  await before.kill()
  writeFileSync(join(host.program, 'lib/runtime/engine.cjs'), readFileSync(join(host.program, 'lib/windlass.mjs')))
  assert.equal((await host.start()).exitCode(), null)
})
