import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { settingsFrom } from '../../cli/settings.ts'
import { KEY, ORG, startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'

const FILE = { url: 'http://127.0.0.1:8787', org: 'default', apiKey: 'wl_local', session: 'wls_local' }
const LOCAL = { ...FILE, from: 'the local instance' }
const FILES = { '.windlass/cli.json': JSON.stringify(FILE) }

const PROFILES = {
  current: 'staging',
  profiles: {
    staging: { url: 'https://staging.example.com', org: 'acme', apiKey: 'wl_staging' },
    prod: { url: 'https://prod.example.com', org: 'acme', apiKey: 'wl_prod', session: 'wls_prod' },
  },
}

/** As `npm start` leaves it: for nobody else to read. */
async function withInstance(t: TestContext, files: Record<string, string> = FILES): Promise<string> {
  const folder = await folderOf(t, files)
  await chmod(path.join(folder, '.windlass/cli.json'), 0o600)
  return folder
}

/** A folder with a local instance, and a file of profiles beside it. */
async function withProfiles(t: TestContext): Promise<{ folder: string; env: Record<string, string> }> {
  const folder = await withInstance(t, { ...FILES, 'config.json': JSON.stringify(PROFILES) })
  const file = path.join(folder, 'config.json')
  await chmod(file, 0o600)
  return { folder, env: { WINDLASS_CONFIG: file } }
}

test('without any setting the two ways to give one are named', async (t) => {
  const { code, stdout, stderr } = await runCli(['runs', 'list'], { cwd: await folderOf(t) })
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /npm start[^]*WINDLASS_URL and WINDLASS_API_KEY/)
})

test('the local instance is found from a folder below, and by WINDLASS_HOME', async (t) => {
  const folder = await withInstance(t)
  await mkdir(path.join(folder, 'a/b'), { recursive: true })
  assert.deepEqual(settingsFrom({}, {}, path.join(folder, 'a/b')), LOCAL)
  assert.deepEqual(settingsFrom({}, { WINDLASS_HOME: path.join(folder, '.windlass') }, '/'), LOCAL)
})

test('flags go before the environment, and both before the local instance', async (t) => {
  const folder = await withInstance(t)
  const env = { WINDLASS_URL: FILE.url, WINDLASS_API_KEY: 'wl_env', WINDLASS_ORG: 'env' }
  assert.deepEqual(settingsFrom({ org: 'flag' }, env, folder), {
    ...LOCAL,
    apiKey: 'wl_env',
    session: undefined,
    org: 'flag',
    from: 'flags and environment',
  })
})

test('the key of the local instance is sent to no other address', async (t) => {
  const folder = await withInstance(t)
  const elsewhere = settingsFrom({ url: 'https://example.com/' }, {}, folder)
  assert.deepEqual([elsewhere.apiKey, elsewhere.session, elsewhere.org], [undefined, undefined, undefined])
  assert.equal(settingsFrom({ url: `${LOCAL.url}/` }, {}, folder).apiKey, LOCAL.apiKey)
})

test('a local instance that came along with a checkout, readable by all, is not trusted', async (t) => {
  const folder = await folderOf(t, FILES)
  await chmod(path.join(folder, '.windlass/cli.json'), 0o644)
  assert.throws(() => settingsFrom({}, {}, folder), { message: /not trusted/, next: /chmod 600/ })
})

/** What one gets who unpacks a project with such a file in it: a file of one's own, for nobody else to read. */
async function unpacked(t: TestContext, file: Record<string, string>): Promise<string> {
  const packed = await withInstance(t, { '.windlass/cli.json': JSON.stringify(file) })
  const folder = await folderOf(t)
  const archive = path.join(folder, 'project.tar')
  execFileSync('tar', ['cf', archive, '-C', packed, '.windlass'])
  execFileSync('tar', ['xf', archive, '-C', folder])
  return folder
}

test('a local instance that came along in an archive directs nobody to another machine', async (t) => {
  const folder = await unpacked(t, { ...FILE, url: 'http://192.0.2.1:8787' })
  const { code, stderr } = await runCli(['secrets', 'set', 'TOKEN'], { cwd: folder, input: 'hunter2' })
  assert.equal(code, 2)
  assert.match(stderr, /directs to http:\/\/192\.0\.2\.1:8787[^]*not trusted[^]*WINDLASS_HOME=/)
  // Who names the folder means what is in it.
  const named = settingsFrom({}, { WINDLASS_HOME: path.join(folder, '.windlass') }, '/')
  assert.equal(named.url, 'http://192.0.2.1:8787')
  for (const url of ['http://127.0.0.1.example.com', 'http://localhost.example.com', 'https://[::2]']) {
    const other = await unpacked(t, { ...FILE, url })
    assert.throws(() => settingsFrom({}, {}, other), { message: /not trusted/ })
  }
})

test('a key of the environment goes to no instance that was merely found', async (t) => {
  const { url, asked } = await startFake(t, { 'runs.list': () => ({ runs: [], nextCursor: null }) })
  const folder = await unpacked(t, { ...FILE, url, apiKey: KEY, org: ORG })
  const list = (env: Record<string, string>) => runCli(['runs', 'list'], { cwd: folder, env })
  for (const name of ['WINDLASS_API_KEY', 'WINDLASS_SESSION']) {
    const { code, stderr } = await list({ [name]: 'wl_victims' })
    assert.equal(code, 2)
    assert.match(stderr, /is set and no address beside it[^]*WINDLASS_URL/)
  }
  assert.deepEqual(asked, [])
  assert.equal((await list({})).code, 0)
  assert.equal((await list({ WINDLASS_API_KEY: KEY, WINDLASS_URL: url })).code, 0)
  const home = { WINDLASS_HOME: path.join(folder, '.windlass') }
  assert.equal(settingsFrom({}, { ...home, WINDLASS_API_KEY: 'wl_env' }, '/').apiKey, 'wl_env')
  assert.equal(settingsFrom({ apiKey: 'wl_flag' }, { WINDLASS_API_KEY: 'wl_env' }, folder).apiKey, 'wl_flag')
  assert.equal(settingsFrom({ profile: 'local' }, { WINDLASS_API_KEY: 'wl_env' }, folder).apiKey, KEY)
})

test('an address or a file that cannot be used is refused by name', async (t) => {
  assert.throws(
    () => settingsFrom({ url: 'localhost:8787' }, {}, '/'),
    /`localhost:8787` is not an http or https address/,
  )
  const torn = await withInstance(t, { '.windlass/cli.json': '{"url":' })
  assert.throws(() => settingsFrom({}, {}, torn), /cli\.json cannot be used/)
})

test('global options stand before or after the command', async (t) => {
  const { url } = await startFake(t, { 'service.ready': () => ({ status: 'ready' }) })
  assert.equal((await runCli(['--url', url, 'service', 'ready'])).code, 0)
  assert.equal((await runCli(['service', 'ready', '--url', url, '--json'])).stdout, '{"status":"ready"}\n')
})

test('the chosen profile goes before the local instance, and `local` names the latter', async (t) => {
  const { folder, env } = await withProfiles(t)
  const staging = { ...PROFILES.profiles.staging, session: undefined, from: 'profile staging' }
  assert.deepEqual(settingsFrom({}, env, folder), staging)
  assert.deepEqual(settingsFrom({ profile: 'local' }, env, folder), LOCAL)
  assert.deepEqual(settingsFrom({}, { ...env, WINDLASS_PROFILE: 'local' }, folder), LOCAL)
  assert.deepEqual(settingsFrom({}, { ...env, WINDLASS_HOME: path.join(folder, '.windlass') }, '/'), LOCAL)
})

test('a profile named by a flag is meant as a whole: the environment does not mix with it', async (t) => {
  const { folder, env } = await withProfiles(t)
  const shell = { ...env, WINDLASS_URL: 'https://other.example.com', WINDLASS_API_KEY: 'wl_env', WINDLASS_ORG: 'env' }
  const prod = { ...PROFILES.profiles.prod, from: 'profile prod' }
  assert.deepEqual(settingsFrom({ profile: 'prod' }, shell, folder), prod)
  assert.deepEqual(settingsFrom({}, { ...env, WINDLASS_PROFILE: 'prod', WINDLASS_ORG: 'env' }, folder), {
    ...prod,
    org: 'env',
  })
})

test('the credentials of a profile are sent to no other address', async (t) => {
  const { folder, env } = await withProfiles(t)
  for (const given of [
    settingsFrom({ profile: 'prod', url: 'https://evil.example.com' }, env, folder),
    settingsFrom({ url: 'https://evil.example.com' }, { ...env, WINDLASS_PROFILE: 'prod' }, folder),
    settingsFrom({ url: 'https://prod.example.com.evil.org' }, { ...env, WINDLASS_PROFILE: 'prod' }, folder),
    settingsFrom({}, { ...env, WINDLASS_URL: 'https://evil.example.com' }, folder),
  ])
    assert.deepEqual([given.apiKey, given.session], [undefined, undefined])
  assert.equal(settingsFrom({ profile: 'prod', url: 'https://prod.example.com/' }, env, folder).apiKey, 'wl_prod')
})

test('who gives an API key acts by it alone, not by the session of the profile', async (t) => {
  const { folder, env } = await withProfiles(t)
  const given = settingsFrom({ profile: 'prod', apiKey: 'wl_mine' }, env, folder)
  assert.deepEqual([given.apiKey, given.session], ['wl_mine', undefined])
})

test('a file of profiles that others may read, or that is torn, is refused with the way out', async (t) => {
  const { folder, env } = await withProfiles(t)
  await chmod(env['WINDLASS_CONFIG']!, 0o644)
  assert.throws(() => settingsFrom({}, env, folder), { message: /others may read/, next: /chmod 600/ })
  const torn = await folderOf(t, { 'c.json': '{"profiles": {"a": {}}}' })
  await chmod(path.join(torn, 'c.json'), 0o600)
  assert.throws(
    () => settingsFrom({}, { WINDLASS_CONFIG: path.join(torn, 'c.json') }, '/'),
    /the profile a has no `url`/,
  )
  assert.throws(() => settingsFrom({ profile: 'prd' }, env, folder), /others may read/)
  await chmod(env['WINDLASS_CONFIG']!, 0o600)
  assert.throws(() => settingsFrom({ profile: 'prd' }, env, folder), /no profile `prd`, did you mean `prod`\?/)
})

test('a key over two lines is refused as that, and shown to nobody', async (t) => {
  const { url, asked } = await startFake(t)
  const env = { WINDLASS_API_KEY: 'wl_SECRET\nx' }
  const { code, stdout, stderr } = await runCli(['whoami'], { url, env })
  assert.deepEqual([code, stdout], [4, ''], stderr)
  assert.match(stderr, /The API key or session cannot be sent: it holds a line break/)
  assert.doesNotMatch(stderr, /SECRET|Cannot reach/)
  assert.deepEqual(asked, [])
})
