import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { complete as completeIn } from '../../cli/completion/complete.ts'
import { createProgram } from '../../cli/program.ts'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'
import { aRun, aWorkflow } from '../_kit/samples.ts'

interface Completed {
  names: string[]
  /** Whether the shell may offer files beside them. */
  files: boolean
}

async function complete(args: string[], options: Parameters<typeof runCli>[1] = {}): Promise<Completed> {
  const { code, stdout, stderr } = await runCli(['complete', '--', ...args], options)
  assert.deepEqual([code, stderr], [0, ''])
  return completedIn(stdout)
}

function completedIn(text: string): Completed {
  const lines = text.trimEnd().split('\n')
  return { names: lines.slice(0, -1).map((line) => line.split('\t')[0] ?? ''), files: lines.at(-1) === ':0' }
}

/** The same in this process. What needs no service is printed before anything is waited for. */
function completeHere(t: TestContext, ...args: string[]): Completed {
  let text = ''
  const { mock } = t.mock.method(process.stdout, 'write', (piece: string) => Boolean((text += piece)))
  try {
    void completeIn(createProgram(), args)
  } finally {
    mock.restore()
  }
  return completedIn(text)
}

/** The same of names that the service knows. Who types does not wait for long: a busy machine may be too slow once. */
function named(args: string[], options: Parameters<typeof runCli>[1] = {}): Promise<string[]> {
  return untilPolled(`names after ${args.join(' ')}`, async () => {
    const { names } = await complete(args, options)
    return names.length > 0 && names
  })
}

test('commands, groups, flags, global flags and choices are completed', async (t) => {
  assert.deepEqual((await complete(['de'])).names, ['dev', 'deploy', 'deliveries'])
  const names = (...args: string[]) => completeHere(t, ...args).names
  assert.deepEqual(names('de'), ['dev', 'deploy', 'deliveries'])
  assert.ok(names('runs', '').includes('children'))
  assert.deepEqual(names('keys', 'create', 'ci', '--ro'), ['--role'])
  assert.deepEqual(names('keys', 'create', 'ci', '--role', 'm'), ['member'])
  assert.deepEqual(names('runs', 'list', '--status', 'que'), ['queued'])
  assert.deepEqual(names('runs', 'list', '--prof'), ['--profile'])
  assert.deepEqual(names('completion', ''), ['bash', 'zsh', 'fish'])
})

test('files are offered where a file or folder is wanted, and nowhere else', (t) => {
  assert.equal(completeHere(t, 'deploy', '').files, true)
  assert.equal(completeHere(t, 'secrets', 'set', 'A', '--file', '').files, true)
  assert.equal(completeHere(t, 'runs', 'list', '').files, false)
})

test('workflows, runs and environments are asked of the service that the words name', async (t) => {
  const run = aRun()
  const { url } = await startFake(t, {
    'workflows.list': () => ({ workflows: [aWorkflow({ description: 'Greets\tall\nof them.' })], nextCursor: null }),
    'runs.list': () => ({ runs: [run], nextCursor: null }),
    'environments.list': () => ({ environments: [{ name: 'staging' }, { name: 'prod' }], nextCursor: null }),
  })
  assert.deepEqual(await named(['run', ''], { url }), ['hello'])
  assert.deepEqual(await named(['logs', ''], { url }), [run.id])
  assert.deepEqual(await named(['run', 'hello', '-e', 'st'], { url }), ['staging'])
  const flags = ['--url', url, '--api-key', 'wl_test', '--org', 'acme', 'run', '']
  assert.deepEqual(await named(flags), ['hello'])
})

test('a service that is away, slow or refuses leaves the line as it is', async (t) => {
  const { url } = await startFake(t, { 'workflows.list': () => new Promise(() => {}) })
  assert.deepEqual(await complete(['run', ''], { url }), { names: [], files: false })
  assert.deepEqual(await complete(['run', ''], { url: 'http://127.0.0.1:9' }), { names: [], files: false })
  assert.deepEqual(await complete(['run', ''], { url, env: { WINDLASS_API_KEY: 'wl_wrong' } }), {
    names: [],
    files: false,
  })
  assert.deepEqual(await complete(['run', ''], { cwd: await folderOf(t) }), { names: [], files: false })
})

test('bash takes the script twice, and completes by it without the package bash-completion', async (t) => {
  const { stdout: script } = await runCli(['completion', 'bash'])
  const bin = path.resolve(import.meta.dirname, '../../cli/windlass.mjs')
  const folder = await folderOf(t, { script })
  const asked = [
    `windlass() { '${process.execPath}' '${bin}' "$@"; }`,
    `source '${folder}/script'; source '${folder}/script'`,
    'COMP_WORDS=(windlass runs ca); COMP_CWORD=2; __windlass_complete; echo "${COMPREPLY[@]}"',
    'complete -p windlass',
  ].join('\n')
  const { stdout, stderr, status } = spawnSync('bash', ['--norc', '-c', asked], { encoding: 'utf8' })
  assert.deepEqual([status, stderr.replace(/.*compopt: not currently executing.*\n/, '')], [0, ''])
  assert.match(stdout, /^cancel\n.*-o default -F __windlass_complete windlass\n$/s)
})

test('bash executes nothing of what has been typed so far', async (t) => {
  const { stdout: script } = await runCli(['completion', 'bash'])
  const folder = await folderOf(t, { script })
  const asked = [
    `windlass() { printf '%s\\n' "$@" >> '${folder}/asked'; echo :4; }`,
    `source '${folder}/script'`,
    `COMP_WORDS=(windlass run '$(touch ${folder}/a)' '\`touch ${folder}/b\`' ';touch ${folder}/c;' '*' '')`,
    'COMP_CWORD=6; __windlass_complete',
  ].join('\n')
  spawnSync('bash', ['--norc', '-c', asked], { cwd: folder })
  assert.deepEqual((await readdir(folder)).sort(), ['asked', 'script'])
  const lines = (await readFile(path.join(folder, 'asked'), 'utf8')).split('\n')
  assert.deepEqual(lines.slice(0, 3), ['complete', '--', 'run'])
  assert.deepEqual(lines.slice(-3), ['*', '', ''])
})

test('a name that a shell would not take for a name is not offered', async (t) => {
  const { url } = await startFake(t, {
    'environments.list': () => ({
      environments: [{ name: '$(touch x)' }, { name: 'a\u001b[2J' }, { name: '--flag' }, { name: 'prod' }],
      nextCursor: null,
    }),
    'workflows.list': () => ({ workflows: [aWorkflow({ description: 'a\u001b[2J\u202eb' })], nextCursor: null }),
  })
  assert.deepEqual(await named(['run', 'hello', '-e', ''], { url }), ['prod'])
  const stdout = await untilPolled('a name', async () => {
    const { stdout } = await runCli(['complete', '--', 'run', ''], { url })
    return stdout !== ':4\n' && stdout
  })
  assert.match(stdout, /^hello\ta\[2Jb\n/)
})

test('zsh and fish get a script of theirs, another shell a refusal', async () => {
  assert.match((await runCli(['completion', 'zsh'])).stdout, /^#compdef windlass/)
  assert.match((await runCli(['completion', 'fish'])).stdout, /complete -c windlass/)
  const { code, stderr } = await runCli(['completion', 'tcsh'])
  assert.equal(code, 2)
  assert.match(stderr, /bash, zsh, fish/)
})
