import type { Log } from '@windlass/shared/log.ts'
import { createSample } from './sample.ts'

/**
 * Limits what readers were sent and have not taken: the bytes of one org, and those of all orgs together. Over a limit
 * the reader that has taken nothing for longest is cut; one of a stream comes back with its last cursor, and an agent
 * asks for its journal again.
 */
export interface UnreadBytes {
  /** Counts what lies here for one reader. Answers what is to be called once it is gone; again does nothing. */
  hold(orgId: string, bytes: number, cut: () => void): () => void
}

interface Holding {
  bytes: number
  cut: () => void
}

/** What lies here for the readers of one org; who has waited longest stands first. */
interface OrgReaders {
  id: string
  bytes: number
  line: Set<Holding>
}

const MIB = 1024 * 1024

interface UnreadOptions {
  log: Log
  /** What they read. */
  of?: 'stream' | 'journal' | 'answer'
  org?: number
  all?: number
  /** Whether the only reader of an org may have more than its limit: of what is sent as a whole one may be larger. */
  sparesLast?: boolean
}

export function createUnreadBytes({
  log,
  of = 'stream',
  org: mostOfOrg = 32 * MIB,
  all: most = 128 * MIB,
  sparesLast = false,
}: UnreadOptions): UnreadBytes {
  const orgs = new Map<string, OrgReaders>()
  const sample = createSample()
  const name = `${of}.cut`
  const total = { bytes: 0 }
  const spared = sparesLast ? 1 : 0

  function release(org: OrgReaders, holding: Holding) {
    if (!org.line.delete(holding)) return
    org.bytes -= holding.bytes
    total.bytes -= holding.bytes
    if (org.line.size === 0) orgs.delete(org.id)
  }

  function cutSlowest(org: OrgReaders, why: { scope: 'org' | 'all'; limitBytes: number }) {
    const [slowest] = org.line
    if (!slowest) return
    const facts = sample(name)
    const message = `Readers leave more than ${why.limitBytes} bytes of their ${of}s unread; the slowest was cut.`
    if (facts) log.warn(name, { orgId: org.id, bytes: slowest.bytes, ...why, message, ...facts })
    release(org, slowest)
    slowest.cut()
  }

  return {
    hold(orgId, bytes, cut) {
      const org = orgs.get(orgId) ?? { id: orgId, bytes: 0, line: new Set<Holding>() }
      orgs.set(orgId, org)
      const holding = { bytes, cut }
      org.line.add(holding)
      org.bytes += bytes
      total.bytes += bytes
      while (org.bytes > mostOfOrg && org.line.size > spared) cutSlowest(org, { scope: 'org', limitBytes: mostOfOrg })
      while (total.bytes > most) cutSlowest(largest(orgs), { scope: 'all', limitBytes: most })
      return () => release(org, holding)
    },
  }
}

/** The org for whose readers most lies here: others are not cut for its sake. */
function largest(orgs: ReadonlyMap<string, OrgReaders>): OrgReaders {
  return [...orgs.values()].reduce((most, org) => (org.bytes > most.bytes ? org : most))
}
