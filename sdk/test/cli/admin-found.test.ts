// The database and the file of keys that `windlass admin` works on where none is named, or one of the two.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { folderOf, runCli } from '../_kit/run-cli.ts'

/** Nothing listens there. */
const HERE = 'postgres://windlass@127.0.0.1:1/windlass'

/** A folder with what `npm start` leaves for whoever keeps the instance. */
async function withInstance(t: TestContext, facts: Record<string, string>): Promise<string> {
  const folder = await folderOf(t, { '.windlass/admin.json': JSON.stringify(facts) })
  await chmod(path.join(folder, '.windlass/admin.json'), 0o600)
  return folder
}

async function retire(cwd: string, { args = [], env = {} }: { args?: string[]; env?: Record<string, string> } = {}) {
  return runCli(['admin', 'secrets', 'rotate-key', '--retire', ...args], { cwd, env })
}

/** A PostgreSQL that asks for the password in clear text, and keeps what it gets. */
async function aCuriousDatabase(t: TestContext): Promise<{ url: string; passwords: string[] }> {
  const passwords: string[] = []
  const server = createServer((socket) => {
    socket.on('error', () => {})
    socket.on('data', (message) => {
      if (message[0] === 0x70) {
        passwords.push(message.subarray(5, -1).toString())
        socket.destroy()
      } else socket.write(Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3]))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const { port } = server.address() as AddressInfo
  return { url: `postgres://windlass@127.0.0.1:${port}/windlass`, passwords }
}

test('a file that came along in an archive leads to no database of another machine', async (t) => {
  const list = (cwd: string, env = {}) => runCli(['admin', 'orgs', 'list'], { cwd, env })
  for (const databaseUrl of [
    'postgres://x@192.0.2.1:1/x',
    'postgres://x@localhost:1/x?host=192.0.2.1',
    'postgres://x@localhost:1/x?host=127.0.0.1,192.0.2.1',
    'postgres://x@localhost%2C192.0.2.1/x',
    'postgres://127.0.0.1.example.com/x',
    // The driver takes what follows the first @.
    'postgres://127.0.0.1#@192.0.2.1,x/x',
  ]) {
    const { code, stderr } = await list(await withInstance(t, { databaseUrl }))
    assert.equal(code, 2, databaseUrl)
    assert.match(stderr, /stranger's machine, so it is not trusted[^]*WINDLASS_HOME=/, databaseUrl)
  }
  for (const databaseUrl of [HERE, 'postgres://x@localhost:5432/x?host=%2Fnone']) {
    const { stderr } = await list(await withInstance(t, { databaseUrl }))
    assert.match(stderr, /database cannot be used/, databaseUrl)
  }
  // A folder that is named is meant with all that is in it.
  const named = await withInstance(t, { databaseUrl: 'postgres://x@127.0.0.1.invalid:1/x' })
  const { stderr } = await list('/', { WINDLASS_HOME: path.join(named, '.windlass') })
  assert.match(stderr, /database cannot be used/)
})

test('a database that was merely found gets no password of the environment', async (t) => {
  const { url, passwords } = await aCuriousDatabase(t)
  const cwd = await withInstance(t, { databaseUrl: url })
  const env = { PGPASSWORD: 'hunter2' }
  await runCli(['admin', 'orgs', 'list'], { cwd, env })
  assert.ok(passwords.length > 0)
  assert.deepEqual([...new Set(passwords)], [''])
  await runCli(['admin', 'orgs', 'list', '--database-url', url], { cwd, env })
  assert.equal(passwords.at(-1), 'hunter2')
})

test('a file that was merely found names no keys elsewhere', async (t) => {
  const file = path.join(await folderOf(t, { 'production.key': '' }), 'production.key')
  const cwd = await withInstance(t, { databaseUrl: HERE, secretKeyFile: file })
  const linked = path.join(await folderOf(t, {}), 'linked')
  await mkdir(path.join(linked, '.windlass'), { recursive: true })
  const link = path.join(linked, '.windlass/secret.key')
  await symlink(file, link)
  await writeFile(
    path.join(linked, '.windlass/admin.json'),
    JSON.stringify({ databaseUrl: HERE, secretKeyFile: link }),
    { mode: 0o600 },
  )
  for (const folder of [cwd, linked]) {
    const { code, stderr } = await retire(folder)
    assert.equal(code, 2)
    assert.match(stderr, /file of keys in another folder, so it is not trusted/)
  }
  // What concerns no keys goes on.
  assert.match((await runCli(['admin', 'orgs', 'list'], { cwd })).stderr, /database cannot be used/)
})

test('keys are taken out of no file that was named while the database was only found', async (t) => {
  const cwd = await withInstance(t, { databaseUrl: HERE })
  const file = path.join(cwd, 'production.key')
  await writeFile(file, '')
  const odd = await retire(cwd, { env: { WINDLASS_SECRET_KEY_FILE: file } })
  assert.equal(odd.code, 2)
  assert.match(odd.stderr, /may not belong together[^]*--database-url/)
  assert.match((await retire(cwd, { args: ['--key-file', file] })).stderr, /may not belong together/)
  const both = await retire(cwd, { args: ['--key-file', file, '--database-url', HERE] })
  assert.match(both.stderr, /database cannot be used/)
})
