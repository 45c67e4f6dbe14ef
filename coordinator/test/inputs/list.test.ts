import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OrgId } from '@windlass/shared/ids.ts'
import { INPUT_STATUSES, type InputStatus } from '@windlass/shared/model/input.ts'
import { sizes } from '../../inputs/store.ts'
import { aCoordinatorOfItsOwn, anOrg, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'

const COUNT = 4000

let c: TestCoordinator
let other: TestCoordinator

/** Half of them were answered, and one of a thousand timed out. */
async function ask(orgId: string, name: string): Promise<void> {
  await c.db`
    insert into inputs (id, org_id, run_id, n, prompt, status, closed_at)
    select 'inp_' || lpad(i::text, 10, '0') || ${name}, ${orgId}, 'run_' || i || ${name}, 0, '', status,
           case when status <> 'open' then now() end
    from (
      select i, case when i % 1000 = 0 then 'timed_out' when i % 2 = 0 then 'answered' else 'open' end as status
      from generate_series(1, ${COUNT}::int) as i
    ) as asked`
}

before(async () => {
  c = await aCoordinatorOfItsOwn({ LOG_LEVEL: 'error' })
  other = asOwner(c, await anOrg(c, 'other'))
  await ask(c.orgId, 'a')
  await c.db`analyze inputs`
})
after(() => c.stop())

const listed = (orgId: string, status: InputStatus[], more: { before?: string; limit?: number } = {}) =>
  rowsRead(c.db, 'inputs', (db) =>
    sizes(db, { orgId: orgId as OrgId, status, runId: undefined, before: undefined, limit: 100, ...more }),
  )

test('a list of questions reads those that it shows, whatever state they have and whoever else asks', async () => {
  for (const status of INPUT_STATUSES)
    assert.deepEqual(await listed(other.orgId, [status]), { found: 0, read: 0 }, status)
  assert.deepEqual(await listed(c.orgId, ['timed_out']), { found: 4, read: 4 })
  const { found, read } = await listed(c.orgId, [...INPUT_STATUSES])
  assert.equal(found, 100)
  assert.ok(read <= 100 * INPUT_STATUSES.length, `${read} rows`)
})

test('questions of several states stand in one order, over all pages', async () => {
  const filter = { orgId: c.orgId, status: ['answered', 'timed_out', 'answered'] as InputStatus[] }
  const ids: string[] = []
  for (let before: string | undefined; ; before = ids.at(-1)) {
    const page = await sizes(c.db, { ...filter, runId: undefined, before, limit: 300 })
    ids.push(...page.map(({ id }) => id))
    if (page.length < 300) break
  }
  const all = await c.db<{ id: string }[]>`select id from inputs where status <> 'open' order by id desc`
  assert.deepEqual(
    ids,
    all.map(({ id }) => id),
  )
})
