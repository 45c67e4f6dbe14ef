import assert from 'node:assert/strict'
import { test } from 'node:test'
import { migrate } from '../../db/migrate.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'
import { aPgbouncer, whyNoPgbouncer } from '../_kit/pgbouncer.ts'
import { aWay } from '../_kit/way.ts'

const skip = whyNoPgbouncer()
/** What is looked for in the answers of servers: see pooler-mode.ts. */
const PID_COLUMN = 'pid\0'

for (const mode of ['transaction', 'statement'] as const)
  test(`a pooler that lends its servers for a ${mode} is refused at the start`, { skip }, async (t) => {
    const database = await testDatabase()
    const pooler = await aPgbouncer(database.url, mode)
    t.after(async () => {
      await pooler.close()
      await database.close()
    })
    await assert.rejects(migrate(pooler, { log }), /lends its servers .* `pool_mode = session`/)
  })

test('a pooler that lends them for a session will do', { skip }, async (t) => {
  const database = await testDatabase()
  const pooler = await aPgbouncer(database.url, 'session')
  t.after(async () => {
    await pooler.close()
    await database.close()
  })
  assert.deepEqual((await migrate(pooler, { log })).applied, [])
})

test('a connection that was lost and opened anew is not taken for a pooler', async (t) => {
  const database = await testDatabase()
  const way = await aWay(database.url)
  t.after(async () => {
    way.close()
    await database.close()
  })
  way.endAfter(PID_COLUMN)
  assert.deepEqual((await migrate(way, { log })).applied, [])
})
