import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test, { type TestContext } from 'node:test'
import { MARKER } from '../../os/environment.ts'
import { environmentOf, markerOf } from '../../os/process-table.ts'
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
