import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const RUNS = 12

let c: TestCoordinator
let runs: Run[]

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  runs = await Promise.all(Array.from({ length: RUNS }, () => aRun(c, { workflow: 'any' })))
  for (const { id } of runs) await c.call(ops.runs.cancel, { run: id })
  await c.db`
    update runs
    set status = 'failed',
        error = json_build_object('code', 'ANY', 'message', repeat('x', 300000), 'detail', json_build_object())::text
    where org_id = ${c.orgId}`
})
after(() => c.stop())

type Page = (cursor: string | undefined) => Promise<{ runs: Run[]; nextCursor: string | null }>

async function pagesOf(page: Page): Promise<string[][]> {
  const pages: string[][] = []
  for (let cursor: string | null | undefined; cursor !== null;) {
    const { runs: found, nextCursor } = await page(cursor)
    pages.push(found.map(({ id }) => id))
    cursor = nextCursor
  }
  return pages
}

test('a page of runs has 1 MiB at most, and the pages have all of them', async () => {
  const pages = await pagesOf((cursor) => c.call(ops.runs.list, { org: c.org, limit: 100, ...(cursor && { cursor }) }))
  assert.deepEqual(
    pages.map(({ length }) => length),
    [3, 3, 3, 3],
  )
  assert.deepEqual(
    pages.flat(),
    runs
      .map(({ id }) => id)
      .toSorted()
      .toReversed(),
  )
})

test('so has a page of the runs that one has called', async () => {
  const [parent, ...children] = runs
  await c.db`update runs set parent_run_id = ${parent!.id} where id = any(${children.map(({ id }) => id)})`
  const ask = { run: parent!.id, limit: 100 }
  const pages = await pagesOf((cursor) => c.call(ops.runs.children, { ...ask, ...(cursor && { cursor }) }))
  assert.deepEqual(
    pages.map(({ length }) => length),
    [3, 3, 3, 2],
  )
})
