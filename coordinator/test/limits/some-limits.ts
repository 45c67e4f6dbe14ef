import { newId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import type { Caller } from '../../actor.ts'
import type { Limits, Decision } from '../../limits/limits.ts'
import { openLimits } from '../../limits/open.ts'

export interface Asked {
  identity?: number
  org?: number
  windowMs?: number
  patienceMs?: number
}

export interface SomeLimits extends Limits {
  /** What was logged, as facts. */
  logged: Record<string, unknown>[]
  close: () => Promise<void>
}

/** The limits of one more coordinator over this database. Nothing is limited that is not asked for. */
export function someLimits(url: string, { identity = 0, org = 0, ...more }: Asked): SomeLimits {
  const logged: Record<string, unknown>[] = []
  const log = createLog({}, 'debug', { write: (line) => logged.push(JSON.parse(line) as Record<string, unknown>) })
  const { limits, close } = openLimits({ url, identity, org, log, ...more })
  return { logged, close, take: (caller) => limits.take(caller) }
}

export function aCaller(more: Partial<Caller> = {}): Caller {
  return {
    kind: 'key',
    id: newId('key'),
    name: 'test',
    orgId: newId('org'),
    org: 'acme',
    role: 'owner',
    scopes: [],
    ...more,
  }
}

/** So many takes of a caller at once. */
export function atOnce(limits: Limits, caller: Caller, takes: number): Promise<Decision[]> {
  return Promise.all(Array.from({ length: takes }, async () => await limits.take(caller)))
}

/** How many of so many takes, one after the other, are let through. */
export async function admitted(limits: Limits, caller: Caller, takes: number): Promise<number> {
  let count = 0
  for (let i = 0; i < takes; i++) if ((await limits.take(caller)).refusal === null) count++
  return count
}

export function headerOf(decision: Decision, name: string): string | undefined {
  return decision.headers.find(([each]) => each === name)?.[1]
}

export interface Quota {
  /** Requests left, or the quota of a policy. */
  amount: number
  /** Seconds until it is whole again, or the length of the window. */
  seconds: number
}

/** Reads `"identity";r=12;t=30, "org";r=…` and its policy. Throws for what is no list of structured fields. */
export function readQuotas(text: string | undefined): Record<string, Quota> {
  const items = (text ?? '').split(', ').map((item) => {
    const match = /^"(identity|org)";[rq]=(\d+);[tw]=(\d+)$/.exec(item)
    if (!match) throw new Error(`no quota: ${item}`)
    return [match[1]!, { amount: Number(match[2]), seconds: Number(match[3]) }] as const
  })
  return Object.fromEntries(items)
}
