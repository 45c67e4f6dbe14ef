// 900 agents of one org that said anew of themselves with each heartbeat kept the others waiting for 3 s.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { anAgent, type Link, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'

const MANY = 6

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
  // Each takes a while, and is counted.
  await c.db.unsafe(`
    create sequence notes minvalue 0 start 0;
    create function note() returns trigger language plpgsql as $$
    begin
      perform nextval('notes');
      perform pg_sleep(0.05);
      return new;
    end $$;
    create trigger note before update of slots on runners for each row execute function note()`)
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

const ids = () => crew.map(({ agent }) => agent.id)
const notes = async () => (await c.db<[{ n: number }]>`select last_value::int as n from notes`)[0].n

async function atOnce(): Promise<number> {
  const [row] = await c.db<[{ count: number }]>`
    select count(*)::int as count
    from pg_stat_activity
    where datname = current_database() and wait_event = 'PgSleep'`
  return row.count
}

async function areAll(slots: number): Promise<boolean> {
  const rows = await c.db`select id from runners where slots = ${slots} and id = any(${ids()})`
  return rows.length === MANY
}

test('what the agents of an org say of themselves is stored one after the other', async () => {
  let most = 0
  await beats(7)
  await untilPolled('all to be stored', async () => {
    most = Math.max(most, await atOnce())
    return areAll(7)
  })
  assert.equal(most, 1)
})

test('what they said before is not stored again', async () => {
  await beats(8)
  await untilPolled('all to be stored', () => areAll(8))
  const before = await notes()
  for (let n = 0; n < 3; n++) await beats(8)
  await beats(9)
  await untilPolled('all to be stored', () => areAll(9))
  assert.equal((await notes()) - before, MANY)
})

test('what changes and changes back while it is being stored is stored as it is at last', async () => {
  await beats(3)
  await untilPolled('all to be stored', () => areAll(3))
  await c.db.unsafe(`
    create or replace function note() returns trigger language plpgsql as $$
    begin
      perform pg_sleep(0.5);
      return new;
    end $$`)
  const [{ link }] = [crew[0]!]
  for (const slots of [4, 3]) {
    link.send({ t: 'heartbeat', n: slots, holds: [], slots })
    await link.next('beat')
    if (slots === 4) await untilPolled('it to be under way', async () => (await atOnce()) === 1)
  }
  await untilPolled('the first to be stored', async () => (await atOnce()) === 0)
  await untilPolled('all to be as they were', async () => {
    await link.heartbeat(9)
    return areAll(3)
  })
})

test('who holds the row of a runner holds up no heartbeat, and what it said is stored later', async () => {
  await c.db.begin(async (tx) => {
    await tx`select from runners where id = any(${ids()}) for update`
    await beats(5)
  })
  await untilPolled('all to be stored', async () => {
    await beats(5)
    return areAll(5)
  })
})
