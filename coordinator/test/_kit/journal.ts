/** What programs say about their journals, as an agent passes it on. */
import type { Ask, EntryIdentity, JournalOp, JournalRecord, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { Entry, Offer, Wake } from '@windlass/shared/wire/agent.ts'
import type { Link } from './agent.ts'

export function identity(n: number, kind: EntryIdentity['kind'], more: Partial<EntryIdentity> = {}): EntryIdentity {
  return {
    n,
    position: n,
    parent: '',
    kind,
    name: '',
    hash: `h${n}`,
    occurrence: 1,
    args: '[]',
    site: `index.ts:${n}:1`,
    ...more,
  }
}

export const said = (op: JournalOp, at = Date.now()): Entry => ['j', at, JSON.stringify(op)]

export const opened = (n: number, ask: Ask, more: Partial<EntryIdentity> = {}): Entry =>
  said({ op: 'open', entry: identity(n, ask.for, more), ask })

export const sleeps = (n: number, ms: number): Entry => opened(n, { for: 'sleep', ms })

export const calls = (n: number, workflow: string, input: unknown = null): Entry =>
  opened(
    n,
    { for: 'child', workflow, inputText: JSON.stringify(input), version: null, tags: [], priority: 0 },
    { name: workflow },
  )

export const asks = (n: number, prompt = 'Go on?', timeoutMs: number | null = null): Entry =>
  opened(n, { for: 'input', prompt, schemaText: null, timeoutMs, onTimeoutText: null }, { name: prompt })

export const stepped = (n: number, result: unknown, name = 'step', position = n): Entry =>
  said({ op: 'close', entry: identity(n, 'step', { name, position }), state: 'done', result: JSON.stringify(result) })

export const delivered = (...list: [order: number, n: number, after?: number, idle?: 0 | 1][]): Entry =>
  said({ op: 'deliver', list: list.map(([order, n, after = n, idle = 0]) => [order, n, after, idle]) })

export const parked = (waitsFor: SuspendKind, computeMs = 1): Entry => ['park', Date.now(), waitsFor, computeMs]
export const goesOn = (): Entry => ['resume', Date.now()]
export const evicted = (reason = 'age'): Entry => ['end', Date.now(), { how: 'evicted', reason }, 0]

/** The journal that an offer brings along. */
export const journalOf = (offer: Offer): JournalRecord[] =>
  offer.journal.text === null ? [] : (JSON.parse(offer.journal.text) as JournalRecord[])

/** Of each entry of it, what tells whether the program is given its failure again. */
export const failuresOf = (offer: Offer) =>
  journalOf(offer).map(({ n, attempt, state, delivered: order, after, former }) => [
    n,
    attempt,
    state,
    order,
    after,
    former,
  ])

/** What the agent is told of this run next. Wakes are said more than once, so those of others are passed over. */
export async function wakeOf(link: Link, { run }: { run: string }): Promise<Wake> {
  for (;;) {
    const found = (await link.next('wake')).runs.find((wake) => wake.run === run)
    if (found) return found
  }
}
