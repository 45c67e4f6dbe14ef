import type { TestAgent } from './agent.ts'
import type { TestCoordinator } from './coordinator.ts'

/** The agent was heard an hour ago, as far as the database knows. */
export async function silence(c: Pick<TestCoordinator, 'db'>, { id }: Pick<TestAgent, 'id'>): Promise<void> {
  await c.db`
    update runners
    set last_heartbeat_at = now() - interval '1 hour', last_poll_at = now() - interval '1 hour'
    where id = ${id}`
}
