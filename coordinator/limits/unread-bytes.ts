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

/** What lies here for the readers of one org; who has taken nothing for longest stands first in a line. */
interface OrgReaders {
  id: string
  /** Of all readers. */
  bytes: number
  line: Line
  /**
   * Readers of what alone is larger than the org may have. To cut others for its sake would make no room, so it is not
   * counted with theirs.
   */
  oversized: Line
}

interface Line {
  bytes: number
  holdings: Set<Holding>
}

const MIB = 1024 * 1024

interface UnreadOptions {
  log: Log
  /** What they read. */
  of?: 'stream' | 'journal' | 'answer'
  org?: number
  all?: number
  /** Whether an org may have one beside the others that alone is over its limit: an answer as a whole may be. */
  sparesOne?: boolean
}

export function createUnreadBytes({
  log,
  of = 'stream',
  org: mostOfOrg = 32 * MIB,
  all: most = 128 * MIB,
  sparesOne = false,
}: UnreadOptions): UnreadBytes {
  const orgs = new Map<string, OrgReaders>()
  const sample = createSample()
  const name = `${of}.cut`
  const total = { bytes: 0 }
  const spared = sparesOne ? 1 : 0

  function lineOf(org: OrgReaders, { bytes }: Holding): Line {
    return bytes > mostOfOrg ? org.oversized : org.line
  }

  function add(org: OrgReaders, holding: Holding) {
    lineOf(org, holding).holdings.add(holding)
    for (const sum of [lineOf(org, holding), org, total]) sum.bytes += holding.bytes
  }

  function release(org: OrgReaders, holding: Holding) {
    if (!lineOf(org, holding).holdings.delete(holding)) return
    for (const sum of [lineOf(org, holding), org, total]) sum.bytes -= holding.bytes
    if (org.line.holdings.size + org.oversized.holdings.size === 0) orgs.delete(org.id)
  }

  function cutSlowest(org: OrgReaders, line: Line, why: { scope: 'org' | 'all'; limitBytes: number }) {
    const [slowest] = line.holdings
    if (!slowest) return
    const facts = sample(name)
    const message = `Readers leave more than ${why.limitBytes} bytes of their ${of}s unread; the slowest was cut.`
    if (facts) log.warn(name, { orgId: org.id, bytes: slowest.bytes, ...why, message, ...facts })
    release(org, slowest)
    slowest.cut()
  }

  function cutOfOrg(org: OrgReaders) {
    const why = { scope: 'org', limitBytes: mostOfOrg } as const
    while (org.oversized.holdings.size > spared) cutSlowest(org, org.oversized, why)
    while (org.line.bytes > mostOfOrg) cutSlowest(org, org.line, why)
  }

  function cutOfAll() {
    while (total.bytes > most) {
      const org = largest(orgs)
      const line = org.oversized.bytes > 0 ? org.oversized : org.line
      cutSlowest(org, line, { scope: 'all', limitBytes: most })
    }
  }

  return {
    hold(orgId, bytes, cut) {
      const org = orgs.get(orgId) ?? { id: orgId, bytes: 0, line: emptyLine(), oversized: emptyLine() }
      orgs.set(orgId, org)
      const holding = { bytes, cut }
      add(org, holding)
      cutOfOrg(org)
      cutOfAll()
      return () => release(org, holding)
    },
  }
}

const emptyLine = (): Line => ({ bytes: 0, holdings: new Set() })

/** The org for whose readers most lies here: others are not cut for its sake. */
function largest(orgs: ReadonlyMap<string, OrgReaders>): OrgReaders {
  return [...orgs.values()].reduce((most, org) => (org.bytes > most.bytes ? org : most))
}
