import { randomBytes } from 'node:crypto'
import { builtOnce } from './built-once.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from './coordinator.ts'
import { createExplained, explainSessions } from './explained.ts'
import { twoTenants } from './tenants.ts'

/**
 * An org on a coordinator that explains all it sends. One connection: what was prepared first is what is executed
 * later. `prepare` is done to the database before.
 */
export async function anExplainedOrg(prepare: (db: TestCoordinator['db']) => Promise<void>) {
  const explained = createExplained()
  const c = await aCoordinatorOfItsOwn(
    { SECRET_KEY: randomBytes(32).toString('base64'), SWEEP_MS: 600_000 },
    {
      log: explained.log,
      config: { databaseConnections: 1 },
      prepare: async (db) => {
        await prepare(db)
        await explainSessions(db)
      },
    },
  )
  c.deps.builder = builtOnce(c.deps.builder)
  const { ours } = await twoTenants(c)
  c.onStop(() => ours.agent.close())
  return { c, ours, explained }
}
