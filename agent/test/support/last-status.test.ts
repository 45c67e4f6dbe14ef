import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { daemonOf } from '../../support/daemon.ts'
import { lastStatus } from '../../support/last-status.ts'

test('what stands in the place of a file and is none says nothing', async (t) => {
  const home = await mkdtemp(path.join(tmpdir(), 'windlass-status-'))
  t.after(() => rm(home, { recursive: true }))
  await mkdir(path.join(home, 'status.json'))
  await symlink('agent.lock', path.join(home, 'agent.lock'))
  assert.equal(lastStatus(home), undefined)
  assert.deepEqual(daemonOf(home), { state: 'never-started' })
})
