// What the log says of an agent that connects again and again, and of one that is not let in.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Log } from '@windlass/shared/log.ts'
import { aHello, anAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'

interface Line {
  name: string
  second: number
  unlogged: number
  runnerId: unknown
}

const lines: Line[] = []
const note = (name: string, { unlogged = 0, runnerId }: Record<string, unknown> = {}) =>
  void lines.push({ name, second: Math.floor(performance.now() / 1000), unlogged: Number(unlogged), runnerId })
const log: Log = Object.assign(note, { debug: () => {}, warn: note, error: note })

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({}, { log })
})
after(() => c.stop())

const linesOf = (runnerId: string, name: string) =>
  lines.filter((line) => line.runnerId === runnerId && line.name === name)
const countOf = (found: Line[]) => found.reduce((sum, { unlogged }) => sum + 1 + unlogged, 0)

test('an agent that connects again and again has a few lines, which count the others', async (t) => {
  // A quick machine connects more often in a minute than an agent may.
  t.mock.method(c.deps.sockets.connects, 'take', () => undefined)
  const agent = await anAgent(c)
  const connect = async () => (await agent.connect()).close()
  const COUNT = 40
  for (let n = 0; n < COUNT; n++) await connect()
  for (const name of ['agent.connected', 'agent.disconnected']) {
    // In a second in which it has a line again, that line has the number of those left out.
    await untilPolled(`${name} for each connection`, async () => {
      await connect()
      return countOf(linesOf(agent.id, name)) >= COUNT
    })
    const ofSecond = Map.groupBy(linesOf(agent.id, name), ({ second }) => second)
    // One more where the second has changed between the sample and this log.
    for (const found of ofSecond.values()) assert.ok(found.length <= 6, `${found.length} lines in a second`)
  }
})

test('a connection that is not let in has no line', async () => {
  const agent = await anAgent(c)
  const refused = await agent.dial()
  refused.send(aHello({ protocol: 'windlass/0' }))
  await refused.closed()
  const entered = await agent.dial()
  entered.send(aHello())
  await entered.next('welcome')
  entered.close()
  await untilPolled('the line of the other one', () => linesOf(agent.id, 'agent.disconnected').length > 0)
  assert.equal(linesOf(agent.id, 'agent.disconnected').length, 1)
})
