import type { Log } from '@windlass/shared/log.ts'
import type { Unready } from '@windlass/shared/model/runner.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Facts } from '../facts.ts'

/** Something that has to be in order on this machine before it takes work. */
export interface Check {
  name: string
  /** Answers what is wrong, with the way out. What it throws counts as wrong. */
  look: () => string | undefined | Promise<string | undefined>
  /** For how long an answer serves. */
  freshMs: number
  /** Asked only when work is wanted: it costs something. */
  isCostly?: boolean
}

export interface Checks {
  /** Looks at all of them that were not looked at just now; `cheap` leaves out those that cost something. */
  look(which: 'cheap' | 'all'): Promise<void>
}

interface ChecksOptions {
  facts: Facts
  log: Log
  /** Upper bound for how long an answer serves. */
  freshMs?: number
}

/** What they find stands in the facts, and in the log once for each change. It is taken back as soon as it is mended. */
export function createChecks(
  checks: readonly Check[],
  { facts, log, freshMs: mostMs = Infinity }: ChecksOptions,
): Checks {
  const found = new Map<string, Unready>()
  const lookedAt = new Map<string, number>()
  /** Two looks at once would ask the same thing twice. */
  const underWay = new Map<string, Promise<void>>()

  function lookAt(check: Check): Promise<void> {
    const looking = underWay.get(check.name) ?? askAndNote(check).finally(() => underWay.delete(check.name))
    underWay.set(check.name, looking)
    return looking
  }

  async function askAndNote(check: Check): Promise<void> {
    const message = await answerOf(check)
    lookedAt.set(check.name, performance.now())
    const before = found.get(check.name)
    if (message === before?.message) return
    if (message === undefined) {
      found.delete(check.name)
      log('check.works', { check: check.name })
    } else {
      found.set(check.name, { check: check.name, message })
      log.error('check.fails', { check: check.name, reason: message, advice: 'no work is taken until that is mended' })
    }
  }

  const isDue = ({ name, freshMs }: Check) =>
    performance.now() - (lookedAt.get(name) ?? -Infinity) >= Math.min(freshMs, mostMs)

  return {
    async look(which) {
      await Promise.all(checks.filter((check) => isDue(check) && (which === 'all' || !check.isCostly)).map(lookAt))
      facts.unready('checks', [...found.values()])
      probe('checks.looked', { unready: found.size })
    },
  }
}

async function answerOf({ look }: Check): Promise<string | undefined> {
  try {
    return await look()
  } catch (error) {
    return error instanceof Error ? error.message : String(error)
  }
}
