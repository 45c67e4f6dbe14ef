import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { aZombie } from '@windlass/shared/test/_kit/processes.ts'
import type { Place } from '../../db/embedded-place.ts'
import { superviseAlone } from '../../db/embedded-supervisor.ts'

test('a home that a live process supervises is refused, and one that a zombie did is taken', async () => {
  const root = await mkdtemp(join(tmpdir(), 'windlass-home-'))
  const zombie = await aZombie()
  try {
    const place = { root, supervisorFile: join(root, 'supervisor.json') } as Place
    const release = await superviseAlone(place)
    await assert.rejects(superviseAlone(place), new RegExp(`in use by the process ${process.pid}`))
    await release()
    const theirs = JSON.stringify({ pid: zombie.pid, startTicks: zombie.started, start: 'one' })
    await writeFile(place.supervisorFile, theirs)
    const releaseAgain = await superviseAlone(place)
    assert.notEqual(await readFile(place.supervisorFile, 'utf8'), theirs)
    await releaseAgain()
  } finally {
    await zombie.end()
    await rm(root, { recursive: true })
  }
})
