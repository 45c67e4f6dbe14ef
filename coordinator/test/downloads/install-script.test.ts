import assert from 'node:assert/strict'
import { get } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { installScript } from '../../downloads/install-script.ts'
import manifest from '../../package.json' with { type: 'json' }
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

/** With a header `Host` that no client of ours would send. */
function asked(host: string): Promise<{ status: number | undefined; body: string }> {
  return new Promise((resolve, reject) => {
    const request = get(`${c.url}/install.sh`, { headers: { host }, timeout: 10_000 }, (response) => {
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
