import assert from 'node:assert/strict'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { settingsFrom } from '../../cli/settings.ts'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'

const LOCAL = { url: 'http://127.0.0.1:8787', org: 'default', apiKey: 'wl_local' }
const FILES = { '.windlass/cli.json': JSON.stringify(LOCAL) }

test('without any setting the two ways to give one are named', async (t) => {
  const { code, stdout, stderr } = await runCli(['runs', 'list'], { cwd: await folderOf(t) })
  assert.deepEqual([code, stdout], [2, ''])
  assert.match(stderr, /npm start[^]*WINDLASS_URL and WINDLASS_API_KEY/)
})

test('the local instance is found from a folder below, and by WINDLASS_HOME', async (t) => {
  const folder = await folderOf(t, FILES)
  await mkdir(path.join(folder, 'a/b'), { recursive: true })
  assert.deepEqual(settingsFrom({}, {}, path.join(folder, 'a/b')), LOCAL)
  assert.deepEqual(settingsFrom({}, { WINDLASS_HOME: path.join(folder, '.windlass') }, '/'), LOCAL)
})

test('flags go before the environment, and both before the local instance', async (t) => {
  const folder = await folderOf(t, FILES)
  const env = { WINDLASS_API_KEY: 'wl_env', WINDLASS_ORG: 'env' }
  assert.deepEqual(settingsFrom({ org: 'flag' }, env, folder), { url: LOCAL.url, apiKey: 'wl_env', org: 'flag' })
})

test('the key of the local instance is sent to no other address', async (t) => {
  const folder = await folderOf(t, FILES)
  const elsewhere = settingsFrom({ url: 'https://example.com/' }, {}, folder)
  assert.deepEqual(elsewhere, { url: 'https://example.com', apiKey: undefined, org: undefined })
  assert.equal(settingsFrom({ url: `${LOCAL.url}/` }, {}, folder).apiKey, LOCAL.apiKey)
})

test('an address or a file that cannot be used is refused by name', async (t) => {
  assert.throws(
    () => settingsFrom({ url: 'localhost:8787' }, {}, '/'),
    /`localhost:8787` is not an http or https address/,
  )
  const torn = await folderOf(t, { '.windlass/cli.json': '{"url":' })
  assert.throws(() => settingsFrom({}, {}, torn), /cli\.json cannot be used/)
})

test('global options stand before or after the command', async (t) => {
  const { url } = await startFake(t, { 'service.ready': () => ({ status: 'ready' }) })
  assert.equal((await runCli(['--url', url, 'service', 'ready'])).code, 0)
  assert.equal((await runCli(['service', 'ready', '--url', url, '--json'])).stdout, '{"status":"ready"}\n')
})
