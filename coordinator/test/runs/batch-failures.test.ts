// What an item of a batch is told when the database fails it: what the same call by itself is told.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const ITEMS = 20

let c: TestCoordinator
let logged: Record<string, unknown>[] = []

before(async () => {
  const write = (line: string) => logged.push(JSON.parse(line) as Record<string, unknown>)
  c = await aCoordinatorOfItsOwn({}, { log: createLog({}, 'warn', { write }) })
  await aWorkflow(c, { slug: 'any' })
  await c.db`
    create function refuse_run() returns trigger language plpgsql as $$
    begin
      raise exception 'as the test says' using errcode = tg_argv[0];
    end $$`
})
after(() => c.stop())

async function whileRefused<T>(sqlState: string, act: () => Promise<T>): Promise<T> {
  await c.db.unsafe(
    `create trigger refuse before insert on runs for each row execute function refuse_run('${sqlState}')`,
  )
  try {
    return await act()
  } finally {
    await c.db`drop trigger refuse on runs`
  }
}

const single = () =>
  c.call(ops.runs.trigger, { org: c.org, workflow: 'any' }).then(
    () => assert.fail('a run was started'),
    ({ code, message }: { code: string; message: string }) => ({ code, message }),
  )

async function items() {
  const asked = Array.from({ length: ITEMS }, (_, input) => ({ input }))
  const { results } = await c.call(ops.runs.batch, { org: c.org, workflow: 'any', items: asked })
  return results.map((result) => ('error' in result ? result.error : assert.fail('a run was started')))
}

for (const [what, sqlState] of [
  ['held by others for too long', '55P03'],
  ['ended a statement', '57014'],
  ['takes no writes', '25006'],
  ['has a full disk', '53100'],
] as const)
  test(`an item may be sent again, as a single call may, when the database ${what}`, async () => {
    const [alone, all] = await whileRefused(sqlState, async () => [await single(), await items()])
    assert.equal(alone.code, 'UNAVAILABLE')
    for (const { code, message } of all) assert.deepEqual({ code, message }, alone)
  })

test('an item that failed for a reason nobody foresaw names its request, and few lines are written', async () => {
  logged = []
  const all = await whileRefused('XX001', items)
  const requests = new Set(all.map(({ detail }) => detail?.['requestId']))
  assert.deepEqual(new Set(all.map(({ code }) => code)), new Set(['INTERNAL']))
  assert.equal(requests.size, 1)
  const lines = logged.filter(({ name }) => name === 'http.failed')
  assert.ok(lines.length > 0 && lines.length < ITEMS, `${lines.length} lines`)
  for (const { op, requestId } of lines) assert.deepEqual([op, requests.has(requestId)], ['runs.batch', true])
})
