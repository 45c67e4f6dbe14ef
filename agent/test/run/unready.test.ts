import assert from 'node:assert/strict'
import { rmSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { aProgram } from '../_kit/bundle.ts'
import { kindsOf } from '../_kit/durable.ts'
import type { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { refuse } from '../_kit/http.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** A file takes the place of a folder when the run is taken: earlier, and the checks of the host would see it. */
function loseAtFetch(fake: FakeCoordinator, folder: string): void {
  fake.onBundle = () => {
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
    return false
  }
}

withAgent(
  'a bundle that this host cannot keep puts the run off, and nothing of it has begun',
  async ({ fake, folder }) => {
    loseAtFetch(fake, path.join(folder, 'bundles'))
    const placement = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
    assert.match(ending.reason, /ENOTDIR/)
    assert.deepEqual(kindsOf(placement), ['end'])
  },
)

withAgent(
  'a program that gets no workspace has not begun',
  async ({ fake, folder }) => {
    loseAtFetch(fake, path.join(folder, 'workspaces'))
    const placement = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
    assert.deepEqual(kindsOf(placement), ['end'])
  },
  { env: { WINDLASS_AGENT_SPARES: '0' } },
)

withAgent('a journal that the service does not give is not blamed on the host', async ({ fake }) => {
  fake.journal = (response) => refuse(response, 404, 'NOT_FOUND')
  const placement = fake.offer(await aProgram(`return 1`), { replay: true, journal: { entries: 3, text: null } })
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'unready' && ending.blame === 'service', JSON.stringify(ending))
  assert.deepEqual(kindsOf(placement), ['end'])
})
