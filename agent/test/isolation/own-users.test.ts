import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmod, cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { type TestContext, test } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { hostQuestions } from '../../doctor/host.ts'
import { readConfig } from '../../config.ts'
import { createIsolation } from '../../isolation/isolation.ts'
import { settleUsers, takeUsers, type WantedIsolation } from '../../isolation/own-users.ts'
import { NO_LIMITS, PLAIN, planIsolation } from '../../isolation/plan.ts'
import type { HostIsolation, IsolationPlan } from '../../isolation/plan.ts'
import { probeIsolation } from '../../isolation/probe.ts'
import { lockUids, LOCKS } from '../../isolation/uid-lock.ts'
import { asUser } from '../../isolation/uids.ts'
import { folderMark } from '../../os/folder-mark.ts'
import { markOf } from '../../os/process-id.ts'
import { uidsOf } from '../../os/process-table.ts'
import { anAgent } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT } from './requirements.ts'

const WANTED: WantedIsolation = {
  level: 'process',
  network: 'host',
  limits: NO_LIMITS,
  uids: 'auto',
  cgroup: 'auto',
}

/** A state folder below one that all may pass, or may not. */
async function aHome(t: TestContext, mode: number): Promise<string> {
  // The folder for temporary files may be one that only its owner may pass.
  const folder = await mkdtemp('/tmp/windlass-users-')
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }))
  await chmod(folder, mode)
  return path.join(folder, 'agent')
}

/** Node lies where it was installed; other users may not get there. */
async function unreachable(t: TestContext): Promise<string | false> {
  if (NEEDS_ROOT) return NEEDS_ROOT
  const settled = await settleUsers(WANTED, { home: await aHome(t, 0o755) })
  return settled.uids ? false : `other users cannot be used here: ${settled.whyNoUsers}`
}

/** An agent as it is by default, to the end of the test. */
async function aDefaultAgent(t: TestContext, home: string) {
  const fake = await FakeCoordinator.start()
  const agent = await anAgent(fake.url, home, { WINDLASS_AGENT_RUN_UIDS: 'auto' })
  t.after(async () => {
    for (let times = 0; times < 3; times++) agent.stop()
    await agent.done
    await fake.close()
  })
  return { fake, agent }
}

const THIEF = `
  const fs = await import('node:fs'); const led = []
  for (const file of [...input.files, '/proc/' + input.pid + '/environ'])
    try { fs.statSync(file).isDirectory() ? fs.readdirSync(file) : fs.readFileSync(file); led.push(file) } catch {}
  return { led, uid: process.getuid() }`

/** What a program can read of its agent, and as whom it executes. */
async function steal(fake: FakeCoordinator, home: string): Promise<{ led: string[]; uid: number }> {
  const files = ['identity.json', 'spool', 'agent.lock', 'keys.json', 'status.json'].map((name) => `${home}/${name}`)
  const placement = fake.offer(await aProgram(THIEF), { inputText: JSON.stringify({ files, pid: process.pid }) })
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  return JSON.parse(ending.outputText) as { led: string[]; uid: number }
}

test('by default a program cannot take the identity of an agent that is root', async (t) => {
  const why = await unreachable(t)
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  const { fake, agent } = await aDefaultAgent(t, home)
  const { led, uid } = await steal(fake, home)
  assert.deepEqual(led, [])
  assert.ok(uid >= 701_000 && uid < 800_000, `user ${uid}`)
  assert.deepEqual(
    agent.lines.filter(({ name }) => name === 'isolation.weak'),
    [],
  )
})

test('where users of their own do not work, runs execute as before, and the reason is told once', async (t) => {
  if (NEEDS_ROOT) return t.skip(NEEDS_ROOT)
  const home = await aHome(t, 0o700)
  const { fake, agent } = await aDefaultAgent(t, home)
  assert.equal((await steal(fake, home)).uid, 0)
  const weak = agent.lines.filter(({ name }) => name === 'isolation.weak')
  assert.equal(weak.length, 1)
  assert.match(String(weak[0]!['warning']), /do not work here: user 7\d{5} cannot be used for runs: .* cannot reach/)
})

/** What the doctor says of isolation. */
async function diagnosis(home: string, plan: IsolationPlan): Promise<string> {
  const config = readConfig({ WINDLASS_URL: 'http://127.0.0.1:1', WINDLASS_AGENT_HOME: home })
  const questions = hostQuestions({ config, settingsFile: undefined, plan: async () => plan })
  const answer = await questions.find(({ check }) => check === 'isolation')!.ask(new AbortController().signal)
  return [answer.verdict, answer.message, answer.fix].join(' ')
}

test('the doctor fails then, and is content when somebody has said that runs are trusted', async (t) => {
  if (NEEDS_ROOT) return t.skip(NEEDS_ROOT)
  const home = await aHome(t, 0o700)
  const { agent } = await aDefaultAgent(t, home)
  assert.ok(agent.runner)
  const verdict = async (uids: WantedIsolation['uids']) =>
    diagnosis(home, planIsolation(await settleUsers({ ...WANTED, uids }, { home }), undefined))
  assert.match(await verdict('auto'), /^fail .*its key among them.*cannot reach.*WINDLASS_AGENT_RUN_UIDS=off/)
  assert.match(await verdict(null), /^warn /)
})

test('the doctor says of bubblewrap what is weak there, and nothing of users that it does not need', async (t) => {
  if (NEEDS_BUBBLEWRAP) return t.skip(NEEDS_BUBBLEWRAP)
  const home = await aHome(t, 0o755)
  await mkdir(home)
  const limits = { ...NO_LIMITS, memoryMb: 512, cpus: 1 }
  const plan = { ...PLAIN, level: 'bubblewrap', limits, cgroup: 'off', whyNoUsers: 'a reason' } as const
  const said = await diagnosis(home, plan)
  assert.match(said, /^warn .*Memory is limited for each process.*The limit of cores is not in force/)
  assert.doesNotMatch(said, /a reason|its key/)
  assert.equal(/are root for services/.test(said), process.getuid?.() === 0, said)
  assert.match(await diagnosis(home, { ...plan, level: 'process' }), /^fail .*its key.*a reason.*The limit of cores/)
})

test('before its first start the doctor finds nothing wrong with a state folder that is closed', async (t) => {
  const why = await unreachable(t)
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  await mkdir(home, { mode: 0o700 })
  const isolation = await settleUsers(WANTED, { home })
  assert.ok(isolation.uids)
  assert.match(await diagnosis(home, { ...isolation, cgroup: 'off' }), /^ok process, users of their own/)
})

/** A process of this test alone, as this user or as that of the test. */
async function aProcess(t: TestContext, uid?: number): Promise<number> {
  const sleep = ['sleep', '300'] as const
  const [file, ...args] = uid === undefined ? sleep : (['setpriv', ...asUser(uid), ...sleep] as const)
  const child = spawn(file, args, { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  const pid = child.pid!
  if (uid !== undefined) await untilPolled('it is that user', () => uidsOf(pid).includes(uid))
  return pid
}

test('agents of one machine get users that are not those of another, and the same ones again', async (t) => {
  const why = await unreachable(t)
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  const settle = async () => (await settleUsers(WANTED, { home })).uids
  const first = await settle()
  assert.ok(first)
  assert.deepEqual(await settle(), first)
  // The lock of this very process is no hindrance, so that an agent may look at its own.
  const lock = await lockUids(first)
  assert.deepEqual(await settle(), first)
  await lock.release()
  const folder = path.join(LOCKS, `${first.first}-${first.last}`)
  await mkdir(folder, { mode: 0o700 })
  t.after(() => rm(folder, { recursive: true, force: true }))
  await writeFile(path.join(folder, 'agent.lock'), JSON.stringify(markOf(await aProcess(t))))
  const other = await settle()
  assert.ok(other)
  assert.ok(other.first > first.last || other.last < first.first, `${first.first}, and ${other.first} beside it`)
})

test('users that have processes are not taken, unless they were taken by this agent before', async (t) => {
  const why = await unreachable(t)
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  await mkdir(home)
  const { isolation, lock } = await takeUsers(WANTED, { home })
  const { uids } = isolation
  assert.ok(uids && lock)
  await lock.release()
  await aProcess(t, uids.first + 7)
  const settle = async () => (await settleUsers(WANTED, { home })).uids
  assert.deepEqual(await settle(), uids, 'a program that lives on')
  await rm(path.join(home, 'uids'))
  const other = await settle()
  assert.ok(other)
  assert.ok(other.first > uids.last || other.last < uids.first, `${uids.first}, and ${other.first}`)
})

test('a copy of the state folder does not get the users of the original, whose programs it would end', async (t) => {
  const why = await unreachable(t)
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  await mkdir(home)
  const { isolation, lock } = await takeUsers(WANTED, { home })
  const { uids } = isolation
  assert.ok(uids && lock)
  await lock.release()
  await aProcess(t, uids.first)
  const copy = `${home}-copy`
  await cp(home, copy, { recursive: true })
  const ofCopy = (await settleUsers(WANTED, { home: copy })).uids
  assert.ok(ofCopy)
  assert.ok(ofCopy.first > uids.last || ofCopy.last < uids.first, `${uids.first}, and ${ofCopy.first}`)
  assert.deepEqual((await settleUsers(WANTED, { home })).uids, uids)
})

test('what was taken before the machine was started anew counts for nothing', async (t) => {
  const why = await unreachable(t)
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  await mkdir(home)
  const { isolation, lock } = await takeUsers(WANTED, { home })
  await lock?.release()
  const { uids } = isolation
  assert.ok(uids)
  await aProcess(t, uids.first)
  await writeFile(path.join(home, 'uids'), `${uids.first}-${uids.last} another-boot ${folderMark(home)}\n`)
  assert.notDeepEqual((await settleUsers(WANTED, { home })).uids, uids)
})

test('where bubblewrap does not work with users, they are not left out', async (t) => {
  const why = NEEDS_BUBBLEWRAP || (await unreachable(t))
  if (why) return t.skip(why)
  const home = await aHome(t, 0o755)
  for (const name of ['runtime', 'workspaces']) await mkdir(path.join(home, name), { recursive: true })
  const { isolation: host, lock } = await takeUsers(WANTED, { home })
  t.after(() => lock?.release())
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  for (const areUsersAutomatic of [true, false]) {
    const wanted: HostIsolation = { ...host, areUsersAutomatic, level: 'bubblewrap', cgroup: 'off' }
    const isolation = await createIsolation({ ...options, host: wanted, log: () => {} })
    t.after(() => isolation.close())
    // Its users come no further than to the state folder.
    await chmod(options.runtime, 0o700)
    const inForce = await isolation.ready()
    assert.ok('refusal' in inForce, JSON.stringify(inForce))
  }
})

test('what somebody has set is taken as it is', async () => {
  const range = { first: 900_000, last: 900_009 }
  assert.deepEqual((await settleUsers({ ...WANTED, uids: range }, { home: '/nowhere' })).uids, range)
  assert.deepEqual((await settleUsers({ ...WANTED, uids: null }, { home: '/nowhere' })).uids, null)
  const refused = await probeIsolation({ plan: { ...WANTED, uids: range }, home: '/nowhere' })
  assert.ok('refusal' in refused || !refused.warnings.some((warning) => warning.includes('by default')))
})
