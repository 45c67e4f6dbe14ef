import { chmodSync } from 'node:fs'
import path from 'node:path'
import type { TestContext } from 'node:test'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { Agent } from '../../start.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses, type Logged } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { textIn } from '../_kit/text-in.ts'
import { FakeCoordinator, linesOf, type FakePlacement } from '../_kit/fake-coordinator.ts'

// In bubblewrap no program is taken back.
const ENV = { WINDLASS_AGENT_ISOLATION: 'process' }

type Offered = Partial<Omit<Offer, 'secrets'>> & {
  secrets?: Record<string, string>
  /** Of all its agents. */
  env?: Record<string, string>
}

/**
 * A program that prints its pid first, whose agent was killed when it had noted how to take it back, and something else
 * had happened after that.
 */
export async function abandoned(
  t: TestContext,
  body: string,
  { secrets, env, ...offered }: Offered,
  beforeKill: (on: { placement: FakePlacement; pid: number; fake: FakeCoordinator; folder: string }) => unknown = () =>
    undefined,
) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  // Runs may have users of their own.
  chmodSync(folder, 0o711)
  const ofAgents = { ...ENV, ...env }
  let next: (Agent & Logged) | undefined
  t.after(async () => {
    // Once would wait for a coordinator that takes nothing.
    for (let times = 0; times < 3; times++) next?.stop()
    await next?.done
    await endAgentProcesses()
    await fake.close()
    await remove()
  })
  if (secrets) fake.secrets = secrets
  const first = await anAgentProcess(fake.url, folder, ofAgents)
  const placement = fake.offer(await aProgram(body), { ...offered, secrets: secrets !== undefined })
  const pid = Number(await until('its first line', () => linesOf(placement)[0]))
  const of = (name: string) => textIn(path.join(folder, name))
  const { run } = placement.offer
  await untilPolled('it is kept', () => of('lives').includes(run) && of('spool').includes(` m ${run} `))
  await beforeKill({ placement, pid, fake, folder })
  await first.kill('SIGKILL')
  const takeOver = async (more: Record<string, string> = {}) =>
    (next = await anAgent(fake.url, folder, { ...ofAgents, ...more }))
  /** An agent that can be killed as well. */
  const takeOverApart = (said?: string) => anAgentProcess(fake.url, folder, ofAgents, said)
  const connected = async () => next?.connected
  return { fake, folder, placement, pid, takeOver, takeOverApart, connected }
}
