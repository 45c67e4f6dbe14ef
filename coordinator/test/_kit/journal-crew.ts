import assert from 'node:assert/strict'
import { after, before } from 'node:test'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { ageTimers } from './ageing.ts'
import { anAgent, PATIENT_MS, takeNext } from './agent.ts'
import { aCoordinator, aRun } from './coordinator.ts'
import type { Crew } from './waiting.ts'
import { aWorkflow } from './workflow.ts'

/** What tests of journals do with the runs of one agent, which is there once the test begins. */
export function journalCrew(current: () => Crew, usual: string) {
  return {
    /** A run in execution. */
    begun: async (workflow = usual): Promise<Offer> => {
      const { c, agent, link } = current()
      await aRun(c, { workflow })
      return takeNext(agent, link)
    },
    /** The run again, from wherever it has to go on. */
    next: async (run: string): Promise<Offer> => {
      const { agent, link } = current()
      const [offer] = await agent.poll(1, PATIENT_MS)
      assert.equal(offer?.run, run)
      await link.accept(offer)
      return offer
    },
    /** Whatever the run waits for comes due now. */
    hurry: (run: string): Promise<void> => ageTimers(current().c, run),
  }
}

/** One agent for all tests of a file, on a coordinator that has these workflows; the first one is the usual one. */
export function journalStage(workflows: readonly [Ask, ...Ask[]]) {
  let crew: Crew | undefined
  const current = () => crew!
  before(async () => {
    const c = await aCoordinator()
    for (const ask of workflows) await aWorkflow(c, ask)
    const agent = await anAgent(c)
    crew = { c, agent, link: await agent.connect() }
  })
  after(async () => {
    current().agent.close()
    await current().c.stop()
  })
  return { current, ...journalCrew(current, workflows[0].slug) }
}

type Ask = NonNullable<Parameters<typeof aWorkflow>[1]> & { slug: string }
