import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { get } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, test, type TestContext } from 'node:test'
import { installScript } from '../../downloads/install-script.ts'
import manifest from '../../package.json' with { type: 'json' }
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

/** With a header `Host` that no client of ours would send. */
function asked(
  host: string,
  { url = c.url, ...headers }: Record<string, string> = {},
): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}/install.sh`, { headers: { host, ...headers }, timeout: 10_000 }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode, body }), reject)
    })
    request.once('error', reject)
  })
}

test('the script names the address by which it was asked for, and the version', async () => {
  for (const host of ['127.0.0.1:8787', 'windlass.example.com', '[::1]:80', 'a_b']) {
    const { status, body } = await asked(host)
    assert.equal(status, 200)
    assert.match(body, /^#!\/bin\/sh\n/)
    assert.ok(body.includes(`\nBASE='http://${host}'\n`), host)
    assert.ok(body.includes(`\nVERSION='${manifest.version}'\n`))
    assert.doesNotMatch(body, /@(BASE|VERSION)@/)
  }
})

test('a header Host that a shell would take for more than an address is refused', async () => {
  for (const host of ["a'; rm -rf / #", '$(id)', '`id`', 'a b', 'a/../b', 'user:pw@a', 'a\\', '[::1];id', 'ä']) {
    await assert.rejects(installScript(`http://${host}`, '1'), { code: 'VALIDATION_FAILED' }, host)
  }
  for (const host of ["a'; id #", '$(id)', '`id`', 'a@b']) {
    const { status, body } = await asked(host)
    assert.equal(status, 400, host)
    assert.match(body, /WINDLASS_BASE_URL/)
  }
})

test('where the settings name an address, it stands in the script whoever asks', async () => {
  const other = await c.another({ BASE_URL: 'https://windlass.example.com' })
  const body = await (await fetch(`${other.url}/install.sh`)).text()
  assert.ok(body.includes("\nBASE='https://windlass.example.com'\n"))
  assert.match(body, /curl -fsSL https:\/\/windlass\.example\.com\/install\.sh/)
})

test('behind a trusted proxy the script names the scheme it was asked by, and nobody else is believed', async () => {
  const { url } = await c.another({ TRUSTED_PROXIES: '127.0.0.0/8,::1' })
  const forwarded = { 'x-forwarded-proto': 'https', 'x-forwarded-for': '192.0.2.1' }
  const base = ({ body }: { body: string }) => /\nBASE='(.*)'\n/.exec(body)?.[1]
  assert.equal(base(await asked('windlass.example.com', { url, ...forwarded })), 'https://windlass.example.com')
  const named = { url, ...forwarded, 'x-forwarded-host': 'other.example.com' }
  assert.equal(base(await asked('inner:8787', named)), 'https://other.example.com')
  assert.equal(base(await asked('windlass.example.com', forwarded)), 'http://windlass.example.com')
})

test('a script that came for plain http fetches nothing from another machine, and says what to do', async () => {
  const { body } = await asked('windlass.example.com')
  const ran = spawnSync('sh', ['-s', '--', '--token', 'wlr_x'], { input: body, encoding: 'utf8', timeout: 60_000 })
  assert.equal(ran.status, 1, ran.stdout)
  assert.match(ran.stderr, /http:\/\/windlass\.example\.com[^]*WINDLASS_BASE_URL=https[^]*--allow-http/)
  assert.equal(ran.stdout, '')
})

/** What the script says to `--upgrade` where these are the settings of an agent, as a user who has nothing else. */
async function upgraded(t: TestContext, settings: string): Promise<string> {
  const home = await mkdtemp('/tmp/windlass-upgrade-')
  t.after(() => rm(home, { recursive: true }))
  await mkdir(join(home, 'windlass-agent'))
  await writeFile(join(home, 'windlass-agent/agent.env'), settings)
  await chmod(home, 0o755)
  const input = await installScript('https://windlass.example.com', manifest.version)
  const env = { PATH: process.env['PATH'], HOME: home, XDG_CONFIG_HOME: home }
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const ran = spawnSync('sh', ['-s', '--', '--upgrade'], { input, env, ...nobody, encoding: 'utf8', timeout: 60_000 })
  assert.equal(ran.status, 1, ran.stdout)
  return ran.stderr
}

test('an upgrade is refused before anything is fetched where the agent would not start afterwards', async (t) => {
  for (const line of [
    'WINDLASS_URL=http://other:8787',
    'WINDLASS_URL="http://other"',
    "export WINDLASS_URL='http://other'",
  ])
    assert.match(await upgraded(t, `${line}\n`), /WINDLASS_URL in .* is http:\/\/other[^]*nothing was fetched/, line)
  const fine = [
    'WINDLASS_URL="https://windlass.example.com"',
    'WINDLASS_URL=http://127.0.0.1:8787/',
    'WINDLASS_URL=http://other\nWINDLASS_AGENT_ALLOW_HTTP=true',
    'WINDLASS_AGENT_NAME=one',
  ]
  for (const lines of fine)
    assert.match(await upgraded(t, `${lines}\n`), /There is no agent in .* to be upgraded/, lines)
})

test('archives and recipes are handed out to anybody, and nothing else', async () => {
  const sums = await fetch(`${c.url}/downloads/SHA256SUMS`)
  assert.equal(sums.status, 200)
  const [sum, name] = (await sums.text()).split('\n')[0]?.split('  ') ?? []
  const archive = await fetch(`${c.url}/downloads/${name}`, { method: 'HEAD' })
  assert.equal(archive.headers.get('etag'), `"${sum}"`)
  assert.equal(archive.headers.get('content-type'), 'application/gzip')
  assert.match(await (await fetch(`${c.url}/downloads/agent.yaml`)).text(), /kind: StatefulSet/)
  assert.match(await (await fetch(`${c.url}/downloads/agent.Dockerfile`)).text(), /^FROM debian/m)
  for (const other of ['package.json', '..%2f..%2fpackage.json', 'windlass-agent-9.tgz'])
    assert.equal((await fetch(`${c.url}/downloads/${other}`)).status, 404, other)
})

test('the packages for npm are handed out to anybody, under names that say what is in them', async () => {
  const listed = await fetch(`${c.url}/downloads/packages.json`)
  assert.equal(listed.status, 200)
  assert.equal(listed.headers.get('content-type'), 'application/json; charset=utf-8')
  const { files } = (await listed.json()) as { files: Record<string, string> }
  assert.deepEqual(Object.keys(files), ['windlass', 'windlass-cli'])
  for (const file of Object.values(files)) {
    const archive = await fetch(`${c.url}/downloads/${file}`, { method: 'HEAD' })
    assert.equal(archive.status, 200)
    assert.equal(archive.headers.get('content-type'), 'application/gzip')
    assert.equal(archive.headers.get('etag')?.slice(1, 17), /-([0-9a-f]{16})\.tgz$/.exec(file)?.[1])
  }
  for (const other of ['windlass-0.1.0-0000000000000000.tgz', 'windlass-0.1.0.tgz', '..%2fpackages%2fwork'])
    assert.equal((await fetch(`${c.url}/downloads/${other}`)).status, 404, other)
})
