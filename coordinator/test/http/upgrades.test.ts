import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

test('whoever asks for a socket cannot fill the log, whether he gets it or is refused', async () => {
  const program = join(import.meta.dirname, 'programs/upgrades.ts')
  const args = ['--disable-warning=ExperimentalWarning', program]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  assert.equal(stdout, '401 401 101 101 101 101 101 101 101 101 101 101 ')
  assert.equal(stderr, '')
})
