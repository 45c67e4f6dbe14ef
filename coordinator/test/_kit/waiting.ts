/** Runs that wait, without the program that would ask for it: an agent of ours says in its place what it waits for. */
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { Ask, SuspendKind } from '@windlass/shared/wire/journal.ts'
import { end, type Link, start, type TestAgent } from './agent.ts'
import { aRun, type RunAsk, type TestCoordinator } from './coordinator.ts'
import { opened } from './journal.ts'

const HOUR_MS = 3_600_000

export const sleepFor = (ms = HOUR_MS): Ask => ({ for: 'sleep', ms })
export const call = (workflow: string): Ask => {
  return { for: 'child', workflow, inputText: 'null', version: null, tags: [], priority: 0 }
}
export const question = (facts: Partial<Extract<Ask, { for: 'input' }>> = {}): Ask => {
  return { for: 'input', prompt: 'Ship it?', schemaText: null, timeoutMs: null, onTimeoutText: null, ...facts }
}

/** The program opens entry `n`. */
export const open = opened

export const park = (waitsFor: SuspendKind): Entry => ['park', Date.now(), waitsFor, 5]

export interface Crew {
  c: TestCoordinator
  agent: TestAgent
  link: Link
}

/** Takes the next run of the pool as far as its acceptance. */
export async function accepted({ agent, link }: Crew): Promise<Offer> {
  const [offer] = await agent.poll(1)
  if (!offer) throw new Error('there was no run to take')
  await link.accept(offer)
  return offer
}

const FIRST: readonly SuspendKind[] = ['input', 'child', 'sleep']

/** A run that waits for these things in a process that is parked. */
export async function aParkedRun(crew: Crew, run: RunAsk, ...asks: Ask[]): Promise<Offer> {
  await aRun(crew.c, run)
  const offer = await accepted(crew)
  const kinds = asks.map((ask) => ask.for)
  const waitsFor = FIRST.find((kind) => kinds.includes(kind)) ?? 'sleep'
  await crew.link.report(offer, 1, start(), ...asks.map((ask, i) => open(i + 1, ask)), park(waitsFor))
  return offer
}

/** The same without a process: it was given up. */
export async function anEvictedRun(crew: Crew, run: RunAsk, ...asks: Ask[]): Promise<Offer> {
  const offer = await aParkedRun(crew, run, ...asks)
  await crew.link.report(offer, asks.length + 3, end({ how: 'evicted', reason: 'age' }))
  return offer
}

export const MISMATCH = { expected: 'sleep(1000) at index.ts:12:9', received: 'sleep(2000)', at: 'index.ts:14:3' }

/** A run whose replay met something else than the journal has. */
export async function aBlockedRun(crew: Crew, run: RunAsk): Promise<Offer> {
  await anEvictedRun(crew, run, sleepFor(1))
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, end({ how: 'blocked', mismatch: MISMATCH }))
  return offer
}
