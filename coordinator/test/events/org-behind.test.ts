import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Reader } from '../../events/live.ts'
import { cleanOrgLogs } from '../../events/org-log.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { aReader } from './sse-reader.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

/** A reader that takes nothing more before it is let go on; what it got, each time. */
function aSlowReader() {
  const got: { positions: number[]; done: boolean }[] = []
  let heard = Promise.withResolvers<void>()
  const full = Promise.withResolvers<void>()
  const reader: Reader = {
    take(page, since, done) {
      got.push({ positions: page.after(since).map(({ cursor }) => cursor), done })
      heard.resolve()
      heard = Promise.withResolvers<void>()
      return full.promise
    },
  }
  return { reader, got, next: () => heard.promise, goOn: () => full.resolve() }
}

test('a live reader that falls behind what is kept has to come back and is told; others read on', async () => {
  const path = `/v1/orgs/${c.org}/events/stream`
  const quick = await aReader(c, path)
  await quick.has(1)
  const { series } = await c.deps.orgLogs.open(c.orgId)
  const slow = aSlowReader()
  const first = slow.next()
  const following = c.deps.tails.follow(c.deps.orgLogs.live(c.orgId, series), 0, slow.reader)
  await aRun(c, { workflow: 'any' })
  await first
  for (let i = 0; i < 3; i++) await aRun(c, { workflow: 'any' })
  await quick.has(5)
  await c.db`
    update org_events set written_at = now() - interval '25 hours'
    where org_id = ${c.orgId} and position <= 3`
  await cleanOrgLogs(c.deps)
  const last = slow.next()
  slow.goOn()
  await last
  assert.deepEqual(slow.got, [
    { positions: [1], done: false },
    { positions: [], done: true },
  ])
  following.leave()
  const again = await aReader(c, path, `${series}.1`)
  assert.equal((await again.has(1))[0]!.event, 'reset')
  again.leave()
  await aRun(c, { workflow: 'any' })
  const frames = await quick.has(6)
  quick.leave()
  assert.deepEqual(
    frames.slice(1).map(({ id }) => Number(id!.split('.')[1])),
    [1, 2, 3, 4, 5],
  )
})
