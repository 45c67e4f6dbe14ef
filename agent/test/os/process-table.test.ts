import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import test from 'node:test'
import { MARKER } from '../../os/environment.ts'
import { environmentOf, markerOf } from '../../os/process-table.ts'

const NEEDS_PROC = process.platform === 'linux' ? false : 'it needs /proc'

test('a large environment hides no marker and is not read to its end', { skip: NEEDS_PROC }, async (t) => {
  const large = Array.from({ length: 15 }, (_, i) => [`LARGE_${i}`, 'x'.repeat(100 * 1024)])
  const child = spawn('sleep', ['300'], { env: { [MARKER]: 'ours', ...Object.fromEntries(large) }, stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  assert.ok(child.pid)
  assert.equal(markerOf(child.pid), 'ours')
  assert.equal(environmentOf(child.pid).length, 64 * 1024)
})
