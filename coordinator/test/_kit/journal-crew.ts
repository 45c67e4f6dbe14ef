import assert from 'node:assert/strict'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { ageTimers } from './ageing.ts'
import { PATIENT_MS, takeNext } from './agent.ts'
import { aRun } from './coordinator.ts'
import type { Crew } from './waiting.ts'

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
