// 900 agents of one org that said anew of themselves with each heartbeat kept the others waiting for 3 s.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anAgent, type Link, type TestAgent } from '../_kit/agent.ts'
import { countBlocked, untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'

const MANY = 6
/** Looks in a row. */
const LOOKS = 30

let c: TestCoordinator
let crew: { agent: TestAgent; link: Link }[]

before(async () => {
  c = await aCoordinatorOfItsOwn()
  crew = await Promise.all(
    Array.from({ length: MANY }, async () => {
      const agent = await anAgent(c)
      return { agent, link: await agent.connect() }
    }),
  )
})
after(async () => {
  for (const { agent } of crew) agent.close()
  await c.stop()
})

const beats = (slots: number) =>
  Promise.all(
    crew.map(async ({ link }, n) => {
      link.send({ t: 'heartbeat', n, holds: [], slots })
      await link.next('beat')
    }),
  )

const rows = () => crew.map(({ agent }) => agent.id)

test('what the agents of an org say of themselves is stored one after the other', async () => {
  const { said } = await c.db.begin(async (tx) => {
    await tx`select from runners where id = any(${rows()}) for update`
    const said = beats(7)
    await untilBlocked(c.db, '%update runners%slots%')
    for (let look = 0; look < LOOKS; look++) assert.equal(await countBlocked(c.db, '%update runners%slots%'), 1)
    return { said }
  })
  await said
  const found = await c.db<{ slots: number }[]>`select slots from runners where id = any(${rows()})`
  assert.deepEqual(
    found.map(({ slots }) => slots),
    Array(MANY).fill(7),
  )
})

test('what they said before is not stored again', async () => {
  await beats(8)
  await c.db.begin(async (tx) => {
    await tx`select from runners where id = any(${rows()}) for update`
    await beats(8)
  })
})
