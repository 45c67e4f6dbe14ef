// Clients of several makers, and requests of one client that reach now this coordinator, now that one.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { allOps } from '@windlass/shared/ops/index.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../../coordinator/test/_kit/coordinator.ts'
import { aWorkflow } from '../../coordinator/test/_kit/workflow.ts'
import { aiSdk, type Connect, handMade, officialNew, officialOld } from './_kit/mcp-clients.ts'

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  other = await c.another()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const CLIENTS: Readonly<Record<string, Connect>> = {
  'the official client of 2025': officialOld,
  'the official client of 2026': officialNew,
  'that of the AI SDK': aiSdk,
  'one made by hand after the text of the protocol': handMade,
}

for (const [whose, connect] of Object.entries(CLIENTS)) {
  test(`${whose} lists, calls, is refused and reads, on two coordinators in turn`, async (t) => {
    const reached = { c: 0, other: 0 }
    let turn = 0
    const inTurn: typeof fetch = (to, init) => {
      const at = turn++ % 2 ? 'other' : 'c'
      reached[at]++
      const url = to instanceof Request ? to.url : String(to)
      return fetch(url.replace(c.url, at === 'c' ? c.url : other.url), init)
    }
    const hand = await connect({ url: c.url, apiKey: c.apiKey, fetch: inTurn })
    t.after(() => hand.close())
    const named = allOps.flatMap((row) => (row.mcp ? [row.mcp.tool] : []))
    assert.deepEqual((await hand.tools()).sort(), named.sort())
    for (let n = 1; n <= 4; n++) {
      const { isError, value } = await hand.call('trigger_now', { workflow: 'any', args: { n } })
      assert.equal(isError, false, JSON.stringify(value))
      assert.deepEqual((await hand.call('get_run_input', { run: value.run.id })).value, { input: { n } })
      assert.match(await hand.read(`windlass://runs/${value.run.id}/events`), /run\.queued/)
    }
    const refused = await hand.call('get_run', { run: 'run_x' })
    assert.deepEqual([refused.isError, refused.value.error.code], [true, 'NOT_FOUND'])
    await assert.rejects(hand.call('no_such_tool'), /no_such_tool/)
    assert.ok(reached.c > 5 && reached.other > 5, JSON.stringify(reached))
  })
}
