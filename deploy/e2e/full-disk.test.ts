// What `npm start` and an agent say when the disk of their folder is full.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { fill } from './_kit/hosts.ts'
import { watchAgent, watchStart, type Watched } from './_kit/start-process.ts'

/** A folder on a file system of its own without a free byte. Undefined where none can be made; the test is skipped. */
function aFullDisk(t: TestContext): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'windlass-full-'))
  t.after(() => {
    spawnSync('umount', [folder])
    rmSync(folder, { recursive: true, force: true })
  })
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', 'size=256k', 'tmpfs', folder], { encoding: 'utf8' })
  if (mounted.status !== 0) {
    t.skip(`no file system can be mounted here: ${mounted.error?.message ?? mounted.stderr.trim()}`)
    return undefined
  }
  chmodSync(folder, 0o755)
  const file = join(folder, 'full')
  writeFileSync(file, '')
  fill(file)
  return folder
}

async function saysSo(started: Watched, folder: string, setting: string): Promise<number | string> {
  const code = await started.ended()
  const errors = started.stderr()
  assert.match(errors, new RegExp(`The disk of ${folder}/home is full.*Make room.*${setting}`))
  assert.doesNotMatch(errors, /\n? {4}at |node:internal|Starting it again/)
  return code
}

test('`npm start` names the folder and what to do, with a database of its own and with another one', async (t) => {
  const folder = aFullDisk(t)
  if (folder === undefined) return
  const other: Record<string, string> = { WINDLASS_DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' }
  for (const more of [{}, other]) {
    const env: Record<string, string> = { WINDLASS_PORT: '0', WINDLASS_HOME: join(folder, 'home'), ...more }
    assert.equal(await saysSo(watchStart({ env }), folder, 'WINDLASS_HOME'), 1)
  }
})

test('an agent names its folder and what to do, and has not used up its token', async (t) => {
  const folder = aFullDisk(t)
  if (folder === undefined) return
  const env = {
    WINDLASS_URL: 'http://127.0.0.1:9',
    WINDLASS_AGENT_TOKEN: 'wlt_none',
    WINDLASS_AGENT_HOME: join(folder, 'home'),
    WINDLASS_AGENT_CONFIG: 'none',
  }
  assert.equal(await saysSo(watchAgent({ env }), folder, 'WINDLASS_AGENT_HOME'), 70)
})
