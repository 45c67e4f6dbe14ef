import assert from 'node:assert/strict'
import { readFile, stat } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { KEY, ORG, SESSION, startFake } from '../_kit/fake-service.ts'
import type { FakeService } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'

const org = { id: newId('org'), slug: ORG, name: 'Acme', createdAt: 0 }

/** A service that says who is asking, and a home without profiles. */
async function setting(t: TestContext): Promise<FakeService & { cwd: string; env: Record<string, string> }> {
  const fake = await startFake(t, {
    'account.get': (_args, _response, request) => {
      const kind = request.headers.authorization === `Bearer ${SESSION}` ? 'session' : 'key'
      return { me: { credential: { kind, id: `${kind}_1`, name: 'Ada', role: 'admin', scopes: [] }, org } }
    },
    'runs.list': () => ({ runs: [], nextCursor: null }),
    'secrets.set': ({ name }) => ({ secret: { name, environment: null, updatedAt: 0, updatedBy: 'ses_1' } }),
  })
  const cwd = await folderOf(t)
  return { ...fake, cwd, env: { HOME: cwd } }
}

test('a profile is added with the key from standard input, checked, and used from then on', async (t) => {
  const { url, cwd, env, asked } = await setting(t)
  const added = await runCli(['profiles', 'add', 'prod', '--url', url], { cwd, env, input: `${KEY}\n` })
  assert.equal(added.code, 0, added.stderr)
  const file = path.join(cwd, '.config/windlass/config.json')
  assert.equal(added.stdout, `prod is kept in ${file}, and used from now on\n`)
  assert.equal((await stat(file)).mode & 0o777, 0o600)
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), {
    current: 'prod',
    profiles: { prod: { url, org: ORG, apiKey: KEY } },
  })
  assert.equal((await runCli(['runs', 'list'], { cwd, env })).code, 0)
  assert.equal(asked.at(-1)?.headers.authorization, `Bearer ${KEY}`)
  const listed = await runCli(['profiles', 'list'], { cwd, env })
  assert.equal(listed.stdout, `*\tprod\t${url}\t${ORG}\tAPI key\n`)
})

test('a key that the service refuses, or that is of another org, is not kept', async (t) => {
  const { url, cwd, env } = await setting(t)
  const wrong = await runCli(['profiles', 'add', 'prod', '--url', url, '--api-key', 'wl_wrong'], { cwd, env })
  assert.equal(wrong.code, 4)
  const foreign = await runCli(['profiles', 'add', 'prod', '--url', url, '--api-key', KEY, '--org', 'other'], {
    cwd,
    env,
  })
  assert.match(foreign.stderr, /of the org acme, not other/)
  assert.equal((await runCli(['profiles', 'list', '--json'], { cwd, env })).stdout, '{"profiles":[]}\n')
})

test('an address whose way can be read is taken with a warning', async (t) => {
  const { cwd, env, url } = await setting(t)
  const said = async (address: string) => {
    const { stderr } = await runCli(['profiles', 'add', 'x', '--url', address, '--api-key', KEY], { cwd, env })
    return stderr
  }
  // Nobody has this name: the warning stands before the key is sent.
  assert.match(await said('http://windlass.invalid'), /plain http to another machine/)
  assert.doesNotMatch(await said('https://windlass.invalid'), /plain http/)
  assert.doesNotMatch(await said(url), /plain http/)
})

test('a profile that somebody else keeps meanwhile is not lost', async (t) => {
  const { cwd, env } = await setting(t)
  const me = { credential: { kind: 'key', id: 'key_1', name: 'Ada', role: 'admin', scopes: [] }, org }
  const asked = Promise.withResolvers<void>()
  const go = Promise.withResolvers<void>()
  const slow = await startFake(t, {
    'account.get': async () => {
      asked.resolve()
      await go.promise
      return { me }
    },
  })
  const fast = await startFake(t, { 'account.get': () => ({ me }) })
  const add = (name: string, url: string) =>
    runCli(['profiles', 'add', name, '--url', url, '--api-key', KEY], { cwd, env })
  const first = add('first', slow.url)
  await asked.promise
  assert.equal((await add('second', fast.url)).code, 0)
  go.resolve()
  assert.equal((await first).code, 0)
  const { stdout } = await runCli(['profiles', 'list', '--json'], { cwd, env })
  const { profiles } = JSON.parse(stdout) as { profiles: { name: string; current: boolean }[] }
  assert.deepEqual(
    profiles.map(({ name, current }) => [name, current]),
    [
      ['second', true],
      ['first', false],
    ],
  )
})

test('a session beside the key serves only what no key may do, and is shown nowhere', async (t) => {
  const { url, cwd, env, asked } = await setting(t)
  const add = (args: string[], input = '') => runCli(['profiles', 'add', 'prod', ...args], { cwd, env, input })
  const all = [await add(['--url', url], KEY)]
  const refused = await runCli(['secrets', 'set', 'A'], { cwd, env, input: 'x' })
  assert.equal(refused.code, 4)
  assert.match(refused.stderr, /windlass admin sessions create[^]*windlass profiles add <name> --url <url> --session -/)
  all.push(await add(['--session', '-'], `${SESSION}\n`))
  all.push(await runCli(['secrets', 'set', 'A'], { cwd, env, input: 'x' }))
  assert.equal(asked.at(-1)?.headers.authorization, `Bearer ${SESSION}`)
  all.push(await runCli(['runs', 'list'], { cwd, env }))
  assert.equal(asked.at(-1)?.headers.authorization, `Bearer ${KEY}`)
  const who = await runCli(['whoami'], { cwd, env })
  assert.match(who.stdout, /from profile prod\norg +acme \(Acme\)\nkey +Ada, admin, all .* key_1\nsession +Ada, admin/)
  all.push(who, await runCli(['profiles', 'list', '--json'], { cwd, env }))
  for (const { code, stdout, stderr } of all) {
    assert.equal(code, 0, stderr)
    assert.doesNotMatch(stdout + stderr, /wls?_test/)
  }
})

test('a new address gets nothing of what was kept for the old one', async (t) => {
  const { url, cwd, env } = await setting(t)
  await runCli(['profiles', 'add', 'prod', '--url', url], { cwd, env, input: KEY })
  const moved = await runCli(['profiles', 'add', 'prod', '--url', 'http://127.0.0.1:9'], { cwd, env })
  assert.equal(moved.code, 0, moved.stderr)
  const { profiles } = JSON.parse(await readFile(path.join(cwd, '.config/windlass/config.json'), 'utf8')) as {
    profiles: unknown
  }
  assert.deepEqual(profiles, { prod: { url: 'http://127.0.0.1:9' } })
})

test('use and remove name what they cannot find', async (t) => {
  const { url, cwd, env } = await setting(t)
  await runCli(['profiles', 'add', 'prod', '--url', url], { cwd, env, input: KEY })
  const wrong = await runCli(['profiles', 'use', 'prodd'], { cwd, env })
  assert.equal(wrong.code, 4)
  assert.match(wrong.stderr, /did you mean `prod`\?\nNext: windlass profiles list/)
  assert.equal((await runCli(['profiles', 'use', 'local'], { cwd, env })).code, 0)
  assert.match((await runCli(['runs', 'list'], { cwd, env })).stderr, /No local instance was found/)
  assert.equal((await runCli(['profiles', 'remove', 'prod'], { cwd, env })).code, 0)
  assert.equal((await runCli(['profiles', 'add', 'local', '--url', url], { cwd, env })).code, 2)
})
