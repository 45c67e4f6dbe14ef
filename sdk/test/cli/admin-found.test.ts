// The database and the file of keys that `windlass admin` works on where none is named, or one of the two.
import assert from 'node:assert/strict'
import { chmod, writeFile } from 'node:fs/promises'
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
