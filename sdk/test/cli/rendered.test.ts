// Commands that their rows make, and the few that people gain from when they are made by hand.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { newId } from '@windlass/shared/ids.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { exampleOf } from '@windlass/shared/ops/words.ts'
import { isRendered } from '../../cli/from-table.ts'
import { createCallerProgram } from '../../cli/caller-program.ts'
import { printAnswer } from '../../cli/row-answer.ts'
import { fieldLines, filled } from '../../cli/row-text.ts'
import { SESSION, startFake } from '../_kit/fake-service.ts'
import { capturing } from '../_kit/in-this-process.ts'
import { runCli } from '../_kit/run-cli.ts'

const program = createCallerProgram(() => undefined)
const AT = Date.UTC(2026, 10, 20, 12)

/** Commands of the service that are made by hand, with what a person gains that a row cannot say. */
const BY_HAND: Record<string, string> = {
  'runs list': 'marks what is blocked, and says how long each run took',
  'runs children': 'the same',
  'runs get': 'tells from the log how the attempts before ended',
  'runs retry': 'follows the new run',
  'runs logs': 'reads all pages, or follows',
  'runs events': 'reads all pages, or follows',
  'runs why': 'draws what the run waits for, and which runners would take it',
  'runs bulk-cancel': 'the filter as flags; waits for the job',
  'runs bulk-retry': 'the filter as flags; waits for the job',
  'inputs list': 'what may be answered, and an answer to begin with',
  'inputs respond': 'takes plain text, a file or standard input, by what the question asks',
  'schedules create': 'lengths and times as people write them',
  'schedules update': 'lengths and times as people write them',
  'schedules pause': 'a word for a field of the update',
  'schedules resume': 'a word for a field of the update',
  'webhooks rotate': 'the overlap as a length; the secret alone on standard output',
  'connections create': 'reads the secret from a prompt or standard input',
  'connections set-secret': 'reads the secret from a prompt or standard input',
  'deliveries payload': 'the bytes as they came',
  'vars set': 'several at once, and a file of them',
  'secrets set': 'reads the value from a prompt, standard input or a file',
  'keys create': 'the end as a length; the key alone on standard output',
  'retention update': 'days as numbers, and `all` for a null',
  'audit list': 'what changed, from what to what',
  'pools create': 'each setting as a flag, in the units of people',
  'pools update': 'each setting as a flag, in the units of people',
  'pools token': 'what to type on the machine that joins',
  'pools demand': 'for how long the oldest run waits, and figures by labels',
  'runners list': 'the state in one word out of five fields, and what is to be upgraded',
  'runners get': 'the same, and what keeps it from taking work',
  'runners plan': 'what becomes of each run, in words, and warnings',
  'runners drain': 'waits, with progress',
  'runners revoke': 'asks before what cannot be undone',
  'runners deregister': 'asks before what cannot be undone',
}

/** Commands of groups that have rows. What stands alone, such as `deploy`, does more than one operation. */
const inGroups = program.commands.flatMap((group) =>
  group.commands.map((command) => ({ words: `${group.name()} ${command.name()}`, command })),
)
const grouped = inGroups.filter(({ words }) => !words.startsWith('profiles '))

test('a command is made of its row, unless a person gains from another', () => {
  const byHand = grouped.filter(({ command }) => !isRendered(command)).map(({ words }) => words)
  assert.deepEqual(byHand.toSorted(), Object.keys(BY_HAND).toSorted())
})

test('a row of a hand-made command shows nothing by itself that nobody would see', () => {
  const rendered = new Set(grouped.filter(({ command }) => isRendered(command)).map(({ words }) => words))
  const seen = allOps.filter((row) => row.cli !== undefined).filter((row) => !rendered.has(typedFor(row)))
  assert.deepEqual(
    seen.map(({ id }) => id),
    [],
  )
})

function typedFor({ id, command }: AnyOp): string {
  const [group = '', name = ''] = id.split('.')
  const short = program.commands.find((each) => each.name() === group || each.aliases().includes(group))
  return command ?? `${short?.name()} ${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`
}

test('every row shows its example whole', async (t) => {
  for (const row of allOps.filter(({ cli }) => cli !== undefined)) {
    const { input, output } = exampleOf(row)
    const { stdout, stderr } = await capturing(t, () => printAnswer(row.cli, output, input))
    assert.notEqual(stdout + stderr, '', row.id)
    assert.doesNotMatch(stdout + stderr, /undefined|\[object|\{[\w.]+[}:|]|NaN/, row.id)
  }
})

test('what a row says to type next can be typed', () => {
  const texts = allOps.flatMap(({ cli = {} }) => [...(cli.note ?? []), ...(cli.help ?? []), cli.table?.none ?? ''])
  const typed = texts.flatMap((text) => [...text.matchAll(/windlass ([a-z-]+)(?: ([a-z-]+))?/g)])
  for (const [whole, first, second] of typed) {
    const group = named(program, first)
    assert.ok(group, whole)
    if (group.commands.length > 0) assert.ok(named(group, second), whole)
  }
  assert.ok(typed.length > 15)
})

function named(parent: Command, name: string | undefined): Command | undefined {
  return parent.commands.find((each) => each.name() === name || each.aliases().includes(name ?? ''))
}

test('a text fills in fields by their names, and is left out where one of them is empty', () => {
  const run = { id: 'run_1', status: 'failed', error: null, createdAt: AT, computeMs: 61_000, tags: ['a', 'b'] }
  assert.equal(filled('{run.id} is {run.status}', { run }), 'run_1 is failed')
  assert.equal(filled('{run.error.code}: {run.error.message}', { run }), undefined)
  assert.equal(filled('{run.tags} in {run.computeMs}', { run }), 'a, b in 1 min 1 s')
  assert.match(filled('{run.createdAt}', { run }) ?? '', /^2026-11-20 /)
  assert.match(filled('{at:time}', { at: AT }) ?? '', /^2026-11-20 /)
  assert.equal(filled('{scopes|all}, {name|nobody}', { scopes: [], name: '' }), 'all, nobody')
  assert.equal(
    filled('{bundleBytes} {memoryMb} {enabled}', { bundleBytes: 1500, memoryMb: 5, enabled: false }),
    '1.5 kB 5 MiB no',
  )
  assert.equal(filled('{matches.run}', { matches: [{ run: 'a' }, { run: null }, { run: 'b' }] }), 'a, b')
  assert.equal(filled('{schema} {count}', { schema: { type: 'string' }, count: 0 }), 'string 0')
  assert.equal(filled('{answer:json}', { answer: 'yes' }), '"yes"')
  const many = Array.from({ length: 23 }, (_, index) => index)
  assert.match(filled('{many}', { many }) ?? '', /18, 19 and 3 more$/)
})

test('fields are a line each, empty ones none, and members of an object or list one each', () => {
  const pool = {
    name: 'a',
    note: '',
    settings: { slots: null, reassignAfterMs: 2000, limits: { memoryMb: 5, cpus: 2 } },
  }
  const lines = fieldLines(
    { pool: 'pool.name', note: 'pool.note', settings: 'pool.settings.*', next: 'times.*:time', warning: 'warnings.*' },
    { pool, times: [AT], warnings: ['one', 'two'] },
  )
  assert.deepEqual(
    lines.filter(([name]) => name !== 'next'),
    [
      ['pool', 'a'],
      ['slots', '-'],
      ['reassign-after', '2.0 s'],
      ['memory', '5 MiB'],
      ['cpus', '2'],
      ['warning', 'one'],
      ['warning', 'two'],
    ],
  )
  assert.match(lines.find(([name]) => name === 'next')?.[1] ?? '', /^2026-11-20 /)
})

test('a name in the body is an argument, and what is typed can be said again', async (t) => {
  const { url, asked } = await startFake(t, {
    'environments.create': () => exampleOf({ id: 'environments.create' }).output,
    'workflows.delete': () => ({}),
    'keys.revoke': () => ({ schedules: 2, registrationTokens: 1, jobs: 1 }),
  })
  const made = await runCli(['env', 'create', 'staging'], { url })
  assert.deepEqual([made.code, made.stdout], [0, 'staging is there\n'], made.stderr)
  assert.match(made.stderr, /^Next: windlass vars set -e staging NAME=VALUE/)
  assert.deepEqual(asked[0]?.args, { org: 'acme', name: 'staging' })
  assert.equal((await runCli(['env', 'create'], { url })).code, 2)
  const gone = await runCli(['workflows', 'delete', 'hello'], { url })
  assert.equal(gone.stdout, 'hello is deleted\n')
  assert.match(gone.stderr, /^Next: windlass workflows restore hello brings it back/)
  const key = newId('key')
  const revoked = await runCli(['keys', 'revoke', key], { url, env: { WINDLASS_API_KEY: SESSION } })
  assert.equal(revoked.stdout, `${key} is revoked\n`)
  assert.match(revoked.stderr, /^Schedules that it has made go on: 2\..*\nRegistration tokens that it has made .*: 1\./)
})

test('a list says where its next page is, and what to do where it is empty', async (t) => {
  const { url, answers } = await startFake(t, { 'jobs.list': () => ({ jobs: [], nextCursor: null }) })
  const none = await runCli(['jobs', 'list', '--status', 'running'], { url })
  assert.deepEqual(
    [none.stdout, none.stderr],
    ['', 'No jobs. Next: windlass runs bulk-cancel --status queued --dry-run\n'],
  )
  answers['workflows.listVersions'] = () => ({
    ...(exampleOf({ id: 'workflows.listVersions' }).output as object),
    nextCursor: 'abc',
  })
  const { stdout, stderr } = await runCli(['workflows', 'versions', 'hello'], { url })
  assert.match(stdout, /^\d+\t\d{4}-\d\d-\d\d [\d:]+\t\S+\t\S+ kB\t[0-9a-f]{64}/)
  assert.match(stderr, /More: windlass workflows versions hello --cursor abc/)
})
