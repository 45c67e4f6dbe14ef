import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'

test('whoever asks for a socket and is refused cannot fill the log', async () => {
  const program = join(import.meta.dirname, 'programs/refuse-upgrades.ts')
  const args = ['--disable-warning=ExperimentalWarning', program]
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args, { timeout: 60_000 })
  assert.equal(stdout, '401 401 ')
  assert.equal(stderr, '')
})
