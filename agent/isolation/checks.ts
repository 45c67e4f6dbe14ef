import type { Check } from '../checks/checks.ts'
import type { Facts } from '../facts.ts'
import type { Processes } from '../run/hosts/processes.ts'

const FRESH_MS = 5_000

/** Whether programs can be kept apart as it is wanted, and be ended. What is in force is told as soon as it is known. */
export function isolationChecks(processes: Pick<Processes, 'isolation' | 'stats'>, facts: Pick<Facts, 'set'>): Check[] {
  return [
    {
      name: 'sandbox',
      freshMs: FRESH_MS,
      async look() {
        const found = await processes.isolation()
        if ('refusal' in found) return found.refusal
        facts.set({ isolation: found.effective })
        return undefined
      },
    },
    { name: 'survivors', freshMs: 0, look: () => survivorsIn(processes.stats().survivors) },
  ]
}

function survivorsIn(count: number): string | undefined {
  if (count === 0) return undefined
  return `${count} programs have ended and something of them cannot be killed. That is a fault of this machine, such as a disk or a network drive that does not answer: mend it or restart the machine.`
}
