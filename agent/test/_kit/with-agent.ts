import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { aFolder, anAgent } from './an-agent.ts'
import type { Logged } from './an-agent.ts'
import type { Paces } from '../../paces.ts'
import type { Agent } from '../../start.ts'
import { FakeCoordinator } from './fake-coordinator.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'

interface Setting {
  fake: FakeCoordinator
  agent: Agent & Logged
  folder: string
  context: TestContext
}

/** A coordinator, a connected agent, and both gone afterwards. */
export function withAgent(
  name: string,
  body: (setting: Setting) => Promise<void>,
  given: { settings?: Partial<AgentSettings>; env?: Record<string, string>; paces?: Partial<Paces> } = {},
): void {
  test(name, async (context) => {
    const fake = await FakeCoordinator.start(given.settings)
    const { folder, remove } = await aFolder()
    const agent = await anAgent(fake.url, folder, given.env, given.paces)
    try {
      await body({ fake, agent, folder, context })
    } finally {
      for (let times = 0; times < 3; times++) agent.stop()
      await agent.done
      await fake.close()
      await remove()
    }
  })
}
