import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import test, { type TestContext } from 'node:test'
import { MARKER } from '../../os/environment.ts'
import { environmentOf, findPids, markerOf } from '../../os/process-table.ts'
import { NEEDS_ROOT } from '../isolation/requirements.ts'

const NEEDS_PROC = process.platform === 'linux' ? false : 'it needs /proc'

async function aSleeper(t: TestContext, env: Record<string, string>, uid?: number): Promise<number> {
  const child = spawn('/bin/sleep', ['300'], { env, stdio: 'ignore', ...(uid !== undefined && { uid }) })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  assert.ok(child.pid)
  return child.pid
}

test('a large environment hides no marker and is not read to its end', { skip: NEEDS_PROC }, async (t) => {
  const large = Array.from({ length: 15 }, (_, i) => [`LARGE_${i}`, 'x'.repeat(100 * 1024)])
  const pid = await aSleeper(t, { [MARKER]: 'ours', ...Object.fromEntries(large) })
  assert.equal(markerOf(pid), 'ours')
  assert.equal(environmentOf(pid).length, 64 * 1024)
})

test(
  'nothing is read from the memory of a process of another user, which may keep its readers waiting',
  { skip: NEEDS_ROOT },
  async (t) => {
    const pid = await aSleeper(t, { [MARKER]: 'ours' }, 47_000)
    assert.equal(environmentOf(pid), '')
  },
)

test('a look goes on where a process ends just then', { skip: NEEDS_PROC }, async (t) => {
  const open = fs.opendirSync
  const gone = Object.assign(new Error('ENOENT: no such file or directory, lstat'), { code: 'ENOENT' })
  t.mock.method(fs, 'opendirSync', (...args: Parameters<typeof open>) => {
    const folder = open(...args)
    const read = folder.readSync.bind(folder)
    let reads = 0
    folder.readSync = () => {
      if (++reads % 2) throw gone
      return read()
    }
    return folder
  })
  syncBuiltinESMExports()
  t.after(syncBuiltinESMExports)
  const pid = await aSleeper(t, {})
  assert.deepEqual(await findPids((one) => one === pid), [pid])
})
