import assert from 'node:assert/strict'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import type { AgentRun } from '../../run/agent-run.ts'
import { createSecrets } from '../../run/secrets.ts'
import { aBundle, aProgram } from '../_kit/bundle.ts'
import { linesOf, type FakeCoordinator, type FakePlacement } from '../_kit/fake-coordinator.ts'
import { answer, refuse } from '../_kit/http.ts'
import { playThrough } from '../_kit/small-journal.ts'
import { withAgent } from '../_kit/with-agent.ts'

// Its parts are long and no hex, so that none of them stands in an id or in the name of a folder by chance.
const KEY = 'sk-agentRun-"qzxvjw\\wkvzqx/é1'
const OTHER = 'correct horse battery staple'
const NEVER = new AbortController().signal

async function outputOf(fake: FakeCoordinator, placement: FakePlacement): Promise<unknown> {
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  return JSON.parse(ending.outputText)
}

/** Files below a folder that hold a text. */
function filesWith(folder: string, text: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name))
    .filter((file) => readFileSync(file).includes(text))
}

withAgent('a run reads its secrets with its own token and finds them beside its variables', async ({ fake }) => {
  fake.secrets = { KEY, BOTH: 'the secret of the two' }
  const program = await aProgram(`
    const { KEY, PLAIN, BOTH } = process.env
    return { key: KEY.length, plain: PLAIN, both: BOTH === 'the secret of the two' }`)
  const placement = fake.offer(program, { secrets: true, variables: { PLAIN: 'plain', BOTH: 'the variable' } })
  assert.deepEqual(await outputOf(fake, placement), { key: KEY.length, plain: 'plain', both: true })
  assert.deepEqual(fake.secretReads, [{ run: placement.offer.run, token: 'run-token' }])
})

withAgent('a run without secrets asks for none', async ({ fake }) => {
  assert.equal(await outputOf(fake, fake.offer(await aProgram('return 1'))), 1)
  assert.deepEqual(fake.secretReads, [])
})

withAgent('a long message is hidden where it is cut behind a secret that begins another one', async ({ fake }) => {
  fake.secrets = { SHORT: 'correct horse', OTHER, LONG: 'Zq9"'.repeat(6000) }
  const program = await aProgram(`
    const { SHORT, OTHER, LONG } = process.env
    log.warn('x'.repeat(10_000 - SHORT.length) + OTHER + '.')
    log.error(LONG)
    return 1`)
  const placement = fake.offer(program, { secrets: true })
  await outputOf(fake, placement)
  assert.equal(linesOf(placement).join(''), `${'x'.repeat(9_987)}***.***`)
})

withAgent('whatever way a program tells a secret, it is hidden', async ({ fake, agent, folder }) => {
  fake.secrets = { KEY, OTHER }
  // So that all of it is still in the spool at the end.
  fake.mute.add('ack')
  const program = await aProgram(`
    const fs = await import('node:fs')
    const { execFileSync } = await import('node:child_process')
    const { KEY, OTHER } = process.env
    console.log('console', KEY)
    console.error({ KEY, nested: { json: JSON.stringify({ KEY }) } })
    for (const char of 'char by char ' + KEY + '\\n') process.stdout.write(char)
    fs.writeSync(1, 'raw ' + KEY + '\\n')
    fs.writeSync(2, 'raw ' + OTHER.slice(0, 9))
    fs.writeSync(2, OTHER.slice(9) + '\\n')
    execFileSync('/usr/bin/env', { stdio: ['ignore', 1, 2] })
    log('log ' + KEY, { KEY, [KEY]: [OTHER] })
    log.warn('x'.repeat(9_995) + OTHER)
    phase('phase', { KEY })
    console.log(Buffer.from('user:' + KEY).toString('base64'), encodeURIComponent(KEY), Buffer.from(KEY))
    if (input) throw Object.assign(new Error('thrown ' + KEY), { code: KEY })
    return { [KEY]: KEY, bytes: Buffer.from(OTHER) }`)
  const returned = fake.offer(program, { secrets: true })
  const threw = fake.offer(program, { secrets: true, inputText: '1' })
  assert.deepEqual(await outputOf(fake, returned), { '***': '***', bytes: { type: 'Buffer', data: ['***'] } })
  const ending = await fake.ending(threw)
  assert.ok(ending.how === 'threw')
  assert.deepEqual([ending.error.message, ending.error.code], ['thrown ***', '***'])
  const lines = linesOf(returned)
  for (const line of [
    'console ***',
    'char by char ***',
    'raw ***',
    'KEY=***',
    'OTHER=***',
    'log ***',
    'x'.repeat(9_995),
  ]) {
    assert.ok(
      lines.some((each) => each.includes(line)),
      `${line.slice(0, 30)} in ${JSON.stringify(lines)}`,
    )
  }
  assert.ok(lines.filter((line) => line.startsWith('raw ')).every((line) => line === 'raw ***'))
  const written = JSON.stringify([returned.entries, threw.entries, agent.lines])
  for (const canary of [KEY, OTHER, 'qzxvjw', 'wkvzqx', 'horse', 'staple', Buffer.from('qzxvjw').toString('hex')]) {
    assert.ok(!written.includes(canary), canary)
  }
  assert.equal(filesWith(folder, 'char by char ***').length, 1)
  for (const canary of [KEY, OTHER, 'qzxvjw', 'staple']) assert.deepEqual(filesWith(folder, canary), [])
})

withAgent('a message in pieces hides what was cut in two, and loses nothing else', async ({ fake }) => {
  fake.secrets = { OTHER }
  const program = await aProgram(`
    const text = input.map((length) => 'y'.repeat(length)).join(process.env.OTHER)
    log(text, { n: 1 })
    log('next')`)
  const lengths = [9_990, 5, 19_990, 3]
  const placement = fake.offer(program, { secrets: true, inputText: JSON.stringify(lengths) })
  await fake.ending(placement)
  const lines = linesOf(placement)
  assert.equal(lines.pop(), 'next')
  assert.equal(lines.join(''), lengths.map((length) => 'y'.repeat(length)).join('***'))
})

withAgent('secrets that cannot be had just now are asked for again', async ({ fake }) => {
  let asked = 0
  fake.secrets = (response) => {
    asked += 1
    if (asked === 1) response.destroy()
    else if (asked === 2) refuse(response, 503, 'SECRETS_UNAVAILABLE')
    else answer(response, 200, { secrets: { KEY } })
  }
  const placement = fake.offer(await aProgram('return process.env.KEY.length'), { secrets: true })
  assert.equal(await outputOf(fake, placement), KEY.length)
  assert.equal(asked, 3)
})

test('secrets that cannot be had for a while put the run off', async () => {
  const away = new ApiError('no key', { status: 503, code: 'SECRETS_UNAVAILABLE' })
  const secrets = createSecrets({ secrets: () => Promise.reject(away) }, 300)
  const agentRun = { offer: { run: 'run_x', token: 't', secrets: true }, unwanted: NEVER }
  await assert.rejects(secrets.read(agentRun as unknown as AgentRun), { name: 'SecretsNotNow', message: /no key/ })
})

withAgent('a run whose secrets are refused is lost, says why, and never begins', async ({ fake }) => {
  fake.secrets = (response) => refuse(response, 409, 'STALE_PLACEMENT')
  const placement = fake.offer(await aProgram('return 1'), { secrets: true })
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'lost')
  assert.match(ending.reason, /secrets of the run could not be read: refused with STALE_PLACEMENT/)
  assert.equal(fake.secretReads.length, 1)
  assert.deepEqual(
    placement.entries.map(([kind]) => kind),
    ['end'],
  )
})

withAgent('secrets that are too much to be hidden are refused before the program begins', async ({ fake }) => {
  fake.secrets = { ONE: 'x'.repeat(64 * 1024), TWO: 'y'.repeat(64 * 1024), THREE: 'z' }
  const ending = await fake.ending(fake.offer(await aProgram('return 1'), { secrets: true }))
  assert.ok(ending.how === 'threw')
  assert.equal(ending.error.code, 'SECRETS_TOO_LARGE')
  assert.match(ending.error.message, /131073 bytes in all, and 131072/)
})

withAgent('what is too short to be hidden is named once in the log', async ({ fake }) => {
  fake.secrets = { PIN: '123', KEY }
  const placement = fake.offer(await aProgram(`console.log(process.env.PIN)`), { secrets: true })
  await fake.ending(placement)
  const [warning, pin] = linesOf(placement)
  assert.match(warning ?? '', /does not hide PIN:/)
  assert.equal(pin, '123')
})

withAgent('a process that serves several runs keeps no secret, and none serves runs of others', async ({ fake }) => {
  const program = await aProgram(`
    globalThis.runs = (globalThis.runs ?? 0) + 1
    return { runs: globalThis.runs, names: Object.keys(process.env).filter((name) => /KEY|OTHER/.test(name)) }`)
  const play = (secrets: Record<string, string>) => {
    fake.secrets = secrets
    return outputOf(fake, fake.offer(program, { secrets: true, process: 'reuse', reuseKey: 'one' }))
  }
  assert.deepEqual(await play({ KEY }), { runs: 1, names: ['KEY'] })
  assert.deepEqual(await play({ KEY }), { runs: 2, names: ['KEY'] })
  assert.deepEqual(await play({ KEY: OTHER }), { runs: 1, names: ['KEY'] })
  assert.deepEqual(await play({ OTHER }), { runs: 1, names: ['OTHER'] })
  fake.secrets = {}
  const without = fake.offer(program, { process: 'reuse', reuseKey: 'one' })
  assert.deepEqual(await outputOf(fake, without), { runs: 1, names: [] })
})

/** Begins a line with half of a secret, waits, and goes on with it in a new process. */
const ROTATES = `
  import { sleep, step } from 'windlass'
  export async function run() {
    const before = await step('reads', () => process.env.KEY)
    await step('prints', () => process.stdout.write('old ' + before.slice(0, 8)))
    await sleep('1h')
    process.stdout.write(before.slice(8) + ' ' + before + ' new ' + process.env.KEY + '\\n')
    return process.env.KEY === before
  }`

withAgent(
  'a secret that was changed reaches the next process, and both values are hidden from then on',
  async ({ fake }) => {
    fake.secrets = (response) =>
      answer(response, 200, { secrets: { KEY: fake.secretReads.length === 1 ? OTHER : KEY } })
    const first = fake.offer(await aBundle({ 'main.mjs': ROTATES }), { secrets: true })
    const placements = await playThrough(fake, first)
    assert.equal(placements.length, 2)
    assert.equal(await outputOf(fake, placements[1]!), false)
    assert.deepEqual(placements.flatMap(linesOf), ['old *** *** new ***'])
  },
  { env: { WINDLASS_AGENT_PARKED_MS: '0' } },
)

test('a program that was taken back is believed as many bytes of secrets as it was given', async () => {
  const secrets = createSecrets({ secrets: async () => ({}) })
  const run = {
    offer: { run: 'run_1', secrets: true, variables: { PLAIN: 'p'.repeat(300_000) } },
    secretBytes: 64 * 1024,
  } as unknown as AgentRun
  const given = { PLAIN: 'p'.repeat(300_000), KEY: 'k'.repeat(64 * 1024) }
  assert.deepEqual((await secrets.readAgain(run, given, NEVER))?.values, { KEY: given.KEY })
  const lie = { ...given, OTHER: 'o' }
  const message = 'it says that its secrets have 65537 bytes, and it was given 65536'
  await assert.rejects(secrets.readAgain(run, lie, NEVER), { name: 'SecretsDoubtful', message })
})

test('programs that were taken back together name as much as one may have that nobody confirms', async () => {
  const confirmed = { NOW: 'n'.repeat(60 * 1024) }
  const secrets = createSecrets({ secrets: async () => confirmed })
  const readAgain = (run: string, value: string) => {
    const agentRun = { offer: { run, secrets: true, variables: {} }, secretBytes: 128 * 1024 } as unknown as AgentRun
    return secrets.readAgain(agentRun, { ...confirmed, KEY: value.repeat(60 * 1024) }, NEVER)
  }
  // The same value of several programs takes the room of one.
  for (const run of ['run_1', 'run_2', 'run_3']) assert.ok(await readAgain(run, 'a'))
  assert.ok(await readAgain('run_4', 'b'))
  await assert.rejects(readAgain('run_5', 'c'), { name: 'SecretsDoubtful', message: /no room/ })
  for (const run of ['run_1', 'run_2', 'run_3']) secrets.rests(run, 1)
  assert.ok(await readAgain('run_6', 'c'))
  secrets.forget('run_4')
  assert.ok(await readAgain('run_7', 'd'))
})

test('a run knows how many bytes of secrets its program is given', async () => {
  const secrets = createSecrets({ secrets: async () => ({ KEY: 'ä'.repeat(10), OTHER: 'o' }) })
  const run = { offer: { run: 'run_1', secrets: true, variables: {} }, secretBytes: 0 } as unknown as AgentRun
  await secrets.read(run)
  assert.equal(run.secretBytes, 21)
})

test('a program that was taken back waits longer for its secrets than one that has not begun', async () => {
  const refused = new ApiError('no key', { status: 503, code: 'SECRETS_UNAVAILABLE' })
  let asked = 0
  const rest = { secrets: async () => ((asked += 1) < 3 ? Promise.reject(refused) : { KEY }) }
  const secrets = createSecrets(rest, 0)
  const run = {
    offer: { run: 'run_1', secrets: true, variables: {} },
    unwanted: NEVER,
    secretBytes: 100,
  } as unknown as AgentRun
  await assert.rejects(secrets.read(run), { name: 'SecretsNotNow' })
  assert.deepEqual((await secrets.readAgain(run, { KEY }, NEVER))?.values, { KEY })
})

withAgent('orders that come while secrets are read are obeyed', async ({ fake }) => {
  const held = Promise.withResolvers<void>()
  fake.secrets = () => held.resolve()
  const placement = fake.offer(await aProgram('return 1'), { secrets: true })
  await held.promise
  const { run, epoch } = placement.offer
  fake.send({ t: 'cancel', runs: [{ run, epoch, why: 'cancelled', reason: '', graceMs: 100 }] })
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
})
