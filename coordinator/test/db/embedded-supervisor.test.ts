import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { aZombie } from '@windlass/shared/test/_kit/processes.ts'
import type { Layout } from '../../db/embedded-layout.ts'
import { superviseAlone } from '../../db/embedded-supervisor.ts'

test('a home that a live process supervises is refused, and one that a zombie did is taken', async () => {
  const root = await mkdtemp(join(tmpdir(), 'windlass-home-'))
  const zombie = await aZombie()
  try {
    const layout = { root, supervisorFile: join(root, 'supervisor.json') } as Layout
    const release = await superviseAlone(layout)
    await assert.rejects(superviseAlone(layout), new RegExp(`in use by the process ${process.pid}`))
    await release()
    const theirs = JSON.stringify({ pid: zombie.pid, startTicks: zombie.started, start: 'one' })
    await writeFile(layout.supervisorFile, theirs)
    const releaseAgain = await superviseAlone(layout)
    assert.notEqual(await readFile(layout.supervisorFile, 'utf8'), theirs)
    await releaseAgain()
  } finally {
    await zombie.end()
    await rm(root, { recursive: true })
  }
})
