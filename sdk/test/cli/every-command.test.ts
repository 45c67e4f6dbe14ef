import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Command } from 'commander'
import { FAULTS } from '@windlass/shared/errors.ts'
import { newId } from '@windlass/shared/ids.ts'
import { allOps, groups } from '@windlass/shared/ops/index.ts'
import type { Ops } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isForCallers } from '@windlass/shared/ops/op.ts'
import { ApiError } from '../../client/index.ts'
import { reportOf } from '../../cli/failure.ts'
import { kebab } from '../../cli/fields.ts'
import { createProgram } from '../../cli/program.ts'
import { ORG, SESSION, startFake } from '../_kit/fake-service.ts'
import type { FakeService } from '../_kit/fake-service.ts'
import { changes, startLosingProxy } from '../_kit/losing-proxy.ts'
import { inThisProcess } from '../_kit/in-this-process.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'
import { aJob, aRun, anInput } from '../_kit/samples.ts'

// Called by scripts of the shell, and by nobody else.
const HIDDEN = new Set(['complete', 'help'])
const program = createProgram()
const all = [...leaves(program)]

/** Commands that do something, by what is typed. */
function* leaves(parent: Command, before: string[] = []): Generator<{ path: string[]; command: Command }> {
  for (const command of parent.commands) {
    const path = [...before, command.name()]
    if (command.commands.length > 0) yield* leaves(command, path)
    else if (!HIDDEN.has(command.name())) yield { path, command }
  }
}

test('every operation that a caller may use has a command', () => {
  const typed = all.map(({ path }) => path.join(' '))
  const rows = allOps.filter((row) => isForCallers(row) && (row.wire === undefined || row.command !== undefined))
  const missing = rows.map(commandOf).filter((command) => !typed.includes(command))
  assert.deepEqual(missing, [])
})

function commandOf({ id, command }: AnyOp): string {
  const [group, name] = id.split('.') as [keyof Ops, string]
  return command ?? `${groups[group].short ?? group} ${kebab(name)}`
}

test('every command, argument and flag says what it is', () => {
  for (const { path, command } of [...all, ...parents(program)]) {
    assert.notEqual(command.description(), '', path.join(' '))
    for (const option of command.options) assert.notEqual(option.description, '', `${path.join(' ')} ${option.flags}`)
  }
})

function* parents(parent: Command): Generator<{ path: string[]; command: Command }> {
  for (const command of parent.commands) {
    if (command.commands.length > 0) yield { path: [command.name()], command }
  }
}

test('every command shows an example of itself in its help', () => {
  for (const { path, command } of all) {
    let help = ''
    command.configureOutput({ writeOut: (text) => (help += text) })
    command.outputHelp()
    const name = path.join(' ')
    assert.ok(help.slice(help.indexOf('Options:')).includes(`windlass ${name}`), `${name} has no example`)
  }
})

test('wrong usage of any command ends with 2, says the next step, and prints nothing else', async (t) => {
  for (const { path, command } of all) {
    const positionals = command.registeredArguments.map(({ argChoices }) => argChoices?.[0] ?? 'x')
    const needed = command.options.filter(({ mandatory }) => mandatory)
    const flags = needed.flatMap(({ long, argChoices }) => [String(long), argChoices?.[0] ?? 'x'])
    const args = [...path, ...positionals, ...flags, '--no-such-flag']
    const { code, stdout, stderr } = await inThisProcess(t, args)
    assert.deepEqual([args.join(' '), code, stdout], [args.join(' '), 2, ''], stderr)
    assert.match(stderr, /^error: unknown option '--no-such-flag'.*\nNext: windlass [\w-]+.* --help\n$/s)
  }
})

test('each refusal that the contract names has a way out of its own, and so has one that a newer service knows', () => {
  const exits = Object.entries(FAULTS).map(([code, [status, message]]) => {
    const { next, exit } = reportOf(new ApiError(message, { status, code }), 'runs get')
    assert.match(next ?? '', /\w{3}/, code)
    return [code, exit]
  })
  assert.deepEqual(Object.fromEntries(exits), {
    VALIDATION_FAILED: 2,
    UNAUTHENTICATED: 4,
    UNVERIFIED: 4,
    FORBIDDEN: 4,
    NOT_FOUND: 4,
    METHOD_NOT_ALLOWED: 1,
    CONFLICT: 1,
    RUN_ALREADY_FINISHED: 1,
    RUN_DELETED: 1,
    RUN_HAS_LIVE_CHILDREN: 1,
    RUN_NOT_FINISHED: 1,
    RUN_NOT_BLOCKED: 1,
    INPUT_CLOSED: 1,
    IDEMPOTENCY_CONFLICT: 1,
    RUNNER_BUSY: 1,
    RUNNER_REVOKED: 1,
    POOL_IN_USE: 1,
    ENVIRONMENT_IN_USE: 1,
    WORKFLOW_DISABLED: 1,
    WORKFLOW_EXISTS: 1,
    SCHEDULE_OF_DESCRIPTOR: 1,
    DELIVERY_UNVERIFIED: 1,
    PAYLOAD_NOT_KEPT: 1,
    STALE_PLACEMENT: 1,
    REGISTRATION_TOKEN_USED: 4,
    PAYLOAD_TOO_LARGE: 2,
    UNSUPPORTED_MEDIA_TYPE: 1,
    RANGE_NOT_SATISFIABLE: 1,
    UPGRADE_REQUIRED: 1,
    RATE_LIMITED: 5,
    SECRETS_UNAVAILABLE: 1,
    INTERNAL: 1,
    UNAVAILABLE: 5,
  })
  const later = [400, 401, 403, 404, 409, 418, 429, 500, 503].map(
    (status) => reportOf(new ApiError('new', { status, code: 'NEWER' }), 'runs get').exit,
  )
  assert.deepEqual(later, [2, 4, 4, 4, 1, 2, 5, 1, 1])
})

test('with --json an error is one line of JSON on standard error, also of wrong usage', async (t) => {
  const cwd = await folderOf(t)
  for (const args of [['runs', 'lst'], ['runs', 'list'], ['run']]) {
    const { code, stdout, stderr } = await runCli([...args, '--json'], { cwd })
    assert.deepEqual([code, stdout, stderr.trimEnd().split('\n').length], [2, '', 1])
    assert.equal(typeof (JSON.parse(stderr) as { error: { message: string } }).error.message, 'string')
  }
})

const SAMPLES: Record<string, string> = {
  workflow: 'hello',
  version: '3',
  path: 'index.ts',
  run: newId('run'),
  schedule: newId('sch'),
  job: newId('job'),
  input: newId('inp'),
  pool: newId('pool'),
  runner: newId('rnr'),
  token: newId('rtok'),
  key: newId('key'),
  connection: newId('conn'),
  delivery: newId('dlv'),
  answer: '{}',
  variables: 'A=b',
  name: 'a',
  environment: 'staging',
  reason: 'typo',
}

/** What a command cannot do without, though no single flag of it is mandatory. */
const NEEDED: Record<string, string[]> = {
  'pools update': ['--slots', '2'],
  'retention update': ['--runs', '90'],
  'schedules create': ['--rate', '1h'],
  'schedules update': ['--overlap', 'skip'],
}

test('with --json every command that asks the service prints one JSON document and nothing else', async (t) => {
  const { url, answers } = await startFake(t)
  for (const { id } of allOps) answers[id] = () => ({})
  Object.assign(answers, {
    'runs.events': () => ({ events: [], done: true }),
    'runs.get': () => ({ run: aRun() }),
    'inputs.get': () => ({ input: anInput() }),
    'runs.bulkCancel': () => ({ job: aJob() }),
    'runs.bulkRetry': () => ({ job: aJob() }),
  } satisfies FakeService['answers'])
  for (const { path, command } of asking()) {
    const { code, stdout, stderr } = await inThisProcess(t, argsOf(path, command, url))
    assert.deepEqual([path.join(' '), code, stderr], [path.join(' '), 0, ''])
    assert.equal(typeof JSON.parse(stdout), 'object', path.join(' '))
  }
})

/** Commands that ask the service, but for those whose data lies in files and those without an end. */
function asking() {
  const apart = ['deploy', 'secrets set', 'connections set-secret', 'events']
  const served = allOps.map(commandOf).filter((command) => !apart.includes(command))
  return all.filter(({ path }) => served.includes(path.join(' ')))
}

function argsOf(path: string[], command: Command, url: string): string[] {
  const positionals = command.registeredArguments.map((argument) => SAMPLES[argument.name()] ?? 'x')
  const needed = command.options.filter(({ mandatory }) => mandatory)
  const flags = needed.flatMap(({ long, argChoices }) => [
    String(long),
    argChoices?.[0] ?? (long?.endsWith('-json') ? '[{}]' : SAMPLES['name']!),
  ])
  const follow = path[0] === 'run' ? ['--no-follow'] : []
  const service = ['--url', url, '--api-key', SESSION, '--org', ORG, '--json']
  return [...service, ...path, ...positionals, ...flags, ...follow, ...(NEEDED[path.join(' ')] ?? [])]
}

test('every command whose change has lost its answer says that it may be done, and where that shows', async (t) => {
  const { url, answers } = await startFake(t)
  for (const { id } of allOps) answers[id] = () => ({})
  answers['runs.get'] = () => ({ run: aRun() })
  answers['inputs.get'] = () => ({ input: anInput() })
  const proxy = await startLosingProxy(t, url)
  proxy.loses = { how: 'drop', what: changes }
  const changing = allOps.filter(({ method }) => method !== 'GET').map(commandOf)
  for (const { path, command } of asking().filter((each) => changing.includes(each.path.join(' ')))) {
    const typed = path.join(' ')
    const args = argsOf(path, command, proxy.url)
    const { code, stderr } = await inThisProcess(t, args)
    const { error } = JSON.parse(stderr) as { error: { message: string; detail?: { mayBeDone?: boolean } } }
    assert.deepEqual([typed, code, error.detail?.mayBeDone], [typed, 5, true], stderr)
    const plain = await inThisProcess(
      t,
      args.filter((arg) => arg !== '--json'),
    )
    assert.match(plain.stderr, /its answer was lost: .*\. It may have been done\.\nNext: /, typed)
    assert.doesNotMatch(plain.stderr, /Cannot reach|npm start|\{\w+\}/, typed)
    const [look, first, second] = /windlass ([a-z-]+) ([a-z-]+)/.exec(plain.stderr) ?? []
    const group = program.commands.find((each) => each.name() === first)
    assert.ok(group?.commands.some((each) => each.name() === second) || typed === look, `${typed}: ${plain.stderr}`)
  }
})
