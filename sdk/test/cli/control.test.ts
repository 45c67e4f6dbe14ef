import assert from 'node:assert/strict'
import { writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { newId } from '@windlass/shared/ids.ts'
import { ORG, SESSION, startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'

const AT = Date.UTC(2026, 10, 20, 12)
const asSession = { WINDLASS_API_KEY: SESSION }

test('secrets set takes piped text without its last line break, and a file as it is', async (t) => {
  const { url, asked } = await startFake(t, {
    'secrets.set': ({ name, environment }) => ({
      secret: { name, environment: environment ?? null, updatedAt: AT, updatedBy: 'ses_1' },
    }),
  })
  const set = (args: string[], input?: string) =>
    runCli(['secrets', 'set', 'TLS_KEY', ...args], { url, env: asSession, input })
  const piped = await set([], 'line 1\nline 2\n\n')
  assert.deepEqual([piped.code, piped.stdout], [0, 'TLS_KEY is set for the org\n'], piped.stderr)
  const folder = await folderOf(t, { 'key.pem': 'pem\n' })
  const fromFile = await set(['--file', path.join(folder, 'key.pem'), '-e', 'prod'])
  assert.equal(fromFile.stdout, 'TLS_KEY is set for prod\n')
  assert.deepEqual(
    asked.map(({ args }) => [args['value'], args['environment']]),
    [
      ['line 1\nline 2\n', undefined],
      ['pem\n', 'prod'],
    ],
  )
})

test('a secret on the command line, an empty one and one that is no text are refused before it is sent', async (t) => {
  const { url, asked } = await startFake(t)
  const folder = await folderOf(t, { bytes: new Uint8Array([0xff, 0xfe, 0x00]) })
  const set = (args: string[], input?: string) => runCli(['secrets', 'set', ...args], { url, env: asSession, input })
  const typed = await set(['KEY=hunter2'])
  assert.deepEqual([typed.code, /hunter2/.test(typed.stderr)], [2, false])
  assert.match(typed.stderr, /Next: windlass secrets set KEY/)
  assert.match((await set(['KEY'], '\n')).stderr, /empty[^]*windlass secrets delete KEY/)
  assert.match((await set(['KEY', '--file', path.join(folder, 'bytes')])).stderr, /not UTF-8 text/)
  assert.match((await set(['KEY', '--file', path.join(folder, 'none')])).stderr, /cannot read/)
  assert.equal(asked.length, 0)
})

test('vars set takes several and a file of them, the command line over the file', async (t) => {
  const { url, asked } = await startFake(t, {
    'variables.set': ({ name, value, environment }) => ({
      variable: { name, value, environment: environment ?? null, updatedAt: AT, updatedBy: 'key_1' },
    }),
  })
  const folder = await folderOf(t)
  await writeFile(path.join(folder, '.env'), '# a comment\nexport A="two words"\nB=\'$x\'\nC=file\n')
  const { code, stdout, stderr } = await runCli(['vars', 'set', 'C=cli=x', '-e', 'dev', '--file', '.env'], {
    url,
    cwd: folder,
  })
  assert.equal(code, 0, stderr)
  assert.equal(stdout, 'A, B, C are set for dev\n')
  assert.deepEqual(
    asked.map(({ args }) => [args['name'], args['value'], args['environment']]),
    [
      ['A', 'two words', 'dev'],
      ['B', '$x', 'dev'],
      ['C', 'cli=x', 'dev'],
    ],
  )
  for (const args of [[], ['NAME'], ['=x'], ['--file', 'none']]) {
    const wrong = await runCli(['vars', 'set', ...args], { url, cwd: folder })
    assert.deepEqual([wrong.code, /\nNext: /.test(wrong.stderr)], [2, true])
  }
})

test('env and vars list, create and delete; the long names serve as well', async (t) => {
  const environment = { id: newId('env'), org: ORG, name: 'staging', createdAt: AT }
  const { url, asked } = await startFake(t, {
    'environments.list': () => ({ environments: [environment], nextCursor: null }),
    'environments.create': () => ({ environment }),
    'environments.delete': () => ({}),
    'variables.list': () => ({
      variables: [{ name: 'A', value: 'x\ty', environment: null, updatedAt: AT, updatedBy: 'key_1' }],
      nextCursor: null,
    }),
    'variables.delete': () => ({}),
  })
  const cli = async (...args: string[]) => (await runCli(args, { url })).stdout
  assert.match(await cli('env', 'list'), /^staging\tenv_\w{26}\t2026-11-20/)
  assert.match(await cli('environments', 'list'), /^staging/)
  assert.equal(await cli('env', 'create', 'staging'), 'staging is there\n')
  assert.equal(await cli('env', 'delete', 'staging', '--json'), '{}\n')
  assert.match(await cli('variables', 'list'), /^A\tx y\t-\t/)
  assert.equal(await cli('vars', 'delete', 'A', '-e', 'staging'), 'A is deleted\n')
  assert.deepEqual(asked.at(-1)?.args, { org: ORG, name: 'A', environment: 'staging' })
})

test('keys create prints the key alone, takes scopes and a length of life; revoke says so', async (t) => {
  const apiKey = {
    id: newId('key'),
    org: ORG,
    name: 'ci',
    prefix: 'wl_abcdefg',
    role: 'member',
    scopes: ['run:trigger', 'run:read'],
    createdAt: AT,
    createdBy: null,
    expiresAt: null,
    lastUsedAt: null,
    revokedAt: null,
  }
  const { url, asked } = await startFake(t, {
    'keys.create': () => ({ apiKey, key: 'wl_secret' }),
    'keys.list': () => ({
      apiKeys: [apiKey, { ...apiKey, revokedAt: AT }, { ...apiKey, expiresAt: AT }],
      nextCursor: null,
    }),
    'keys.revoke': () => ({ schedules: 0, registrationTokens: 0, jobs: 0 }),
  })
  const before = Date.now()
  const made = await runCli(
    ['keys', 'create', 'ci', '--role', 'member', '--scopes', 'run:trigger,run:read', '--expires', '90d'],
    { url, env: asSession },
  )
  assert.deepEqual([made.code, made.stdout], [0, 'wl_secret\n'], made.stderr)
  const { expiresAt, ...args } = asked[0]!.args
  assert.deepEqual(args, { org: ORG, name: 'ci', role: 'member', scopes: ['run:trigger', 'run:read'] })
  assert.ok(Number(expiresAt) >= before + 90 * 86_400_000 && Number(expiresAt) <= Date.now() + 90 * 86_400_000)
  const { stdout } = await runCli(['keys', 'list'], { url })
  assert.deepEqual(
    stdout
      .trimEnd()
      .split('\n')
      .map((line) =>
        line
          .split('\t')
          .slice(5, 7)
          .map((cell) => cell.split(' ')[0]),
      ),
    [
      ['never', '-'],
      ['never', '2026-11-20'],
      ['2026-11-20', '-'],
    ],
  )
  assert.equal((await runCli(['keys', 'revoke', apiKey.id], { url })).stdout, `${apiKey.id} is revoked\n`)
  const byKey = await runCli(['keys', 'create', 'ci', '--role', 'member'], { url })
  assert.deepEqual([byKey.code, /windlass admin sessions create/.test(byKey.stderr)], [4, true])
})

test('audit list is a line per change: when, who, what, to what, and what became of it', async (t) => {
  const entry = {
    id: newId('aud'),
    org: ORG,
    createdAt: AT,
    actor: { kind: 'key', id: 'key_1', name: 'ci' },
    via: 'mcp',
    requestId: null,
    action: 'variables.set',
    target: { type: 'variable', id: 'REGION', name: 'REGION' },
    before: { value: 'eu', environment: null },
    after: { value: 'us', environment: null },
  }
  const { url, asked } = await startFake(t, { 'audit.list': () => ({ auditEntries: [entry], nextCursor: null }) })
  const before = Date.now()
  const { code, stdout, stderr } = await runCli(
    ['audit', 'list', '--created-after', '2d', '--created-before', '2026-11-21', '--action', 'variables.*,keys.revoke'],
    { url },
  )
  assert.equal(code, 0, stderr)
  assert.match(stdout, /^2026-11-20 [\d:]+ {2}ci \(key, mcp\) {2}variables\.set {2}REGION {2}value: eu → us\n$/)
  const { createdAfter, createdBefore, action } = asked[0]!.args
  assert.ok(Math.abs(Number(createdAfter) - (before - 2 * 86_400_000)) < 60_000)
  assert.equal(createdBefore, new Date('2026-11-21T00:00:00').getTime())
  assert.deepEqual(action, ['variables.*', 'keys.revoke'])
  assert.deepEqual(JSON.parse((await runCli(['audit', 'list', '--json'], { url })).stdout), {
    auditEntries: [entry],
    nextCursor: null,
  })
  assert.equal((await runCli(['audit', 'list', '--created-after', 'yesterday'], { url })).code, 2)
})

test('a refusal for too many requests says how long to wait', async (t) => {
  const { url } = await startFake(t, {
    'runs.list': () => {
      throw new Fault('RATE_LIMITED', { scope: 'identity', limit: 600, windowMs: 60_000, retryAfterMs: 120_000 })
    },
  })
  const { code, stderr } = await runCli(['runs', 'list'], { url })
  assert.equal(code, 5)
  assert.match(stderr, /Next: wait 2 min 0 s, then again: windlass runs list\n/)
})
