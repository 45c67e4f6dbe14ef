/** Runs in all the states that a sweep looks at, and a look at what it did. */
import assert from 'node:assert/strict'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { Ask } from '@windlass/shared/wire/journal.ts'
import type { OrphanKind } from '../../engine/rules/orphan.ts'
import { sweepRunsOnce } from '../../engine/sweep/sweep.ts'
import { anAgent, end, type Held, start } from './agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf } from './coordinator.ts'
import { opened } from './journal.ts'
import { aWorkflow } from './workflow.ts'

const open = (ask: Ask): Entry => opened(1, ask)

export const SLEEP: Ask = { for: 'sleep', ms: 3_600_000 }
export const QUESTION: Ask = {
  for: 'input',
  prompt: 'Sure?',
  schemaText: null,
  timeoutMs: 3_600_000,
  onTimeoutText: '"no"',
}
export const CALL: Ask = { for: 'child', workflow: 'any', inputText: 'null', version: null, tags: [], priority: 0 }

/** A coordinator that sweeps when it is told to, one agent, and workflows `any` and `narrow`, of which one run may execute. */
export async function aSweptCoordinator() {
  const c = await aCoordinatorOfItsOwn({ SWEEP_RUNS_MS: 3_600_000 })
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'narrow', descriptor: { concurrency: { limit: 1 } } })
  const agent = await anAgent(c)
  const link = await agent.connect()

  const queueRow = async (id: string) =>
    (await c.db<{ isResume: boolean }[]>`select is_resume from run_queue where run_id = ${id}`)[0]
  const timersOf = (id: string) =>
    c.db<
      { kind: string; n: number; dueAt: Date }[]
    >`select kind, n, due_at from timers where run_id = ${id} order by kind`
  const statusOf = async (id: string) => (await runOf(c, id)).status
  const placed = async (id: string) => (await c.db`select from placements where run_id = ${id}`).length === 1
  const entryOf = async (id: string, n = 1) => {
    const [row] = await c.db<{ state: string; result: string | null; dueAt: Date }[]>`
      select state, result, due_at from journal where run_id = ${id} and n = ${n}`
    return row!
  }
  const resultOf = async (id: string) => JSON.parse((await entryOf(id)).result ?? 'null') as unknown

  async function counted(kind: OrphanKind): Promise<number> {
    const text = await (await fetch(`${c.url}/metrics`)).text()
    const line = text.split('\n').find((one) => one.startsWith(`windlass_orphans_total{kind="${kind}"}`))
    return Number(line?.split(' ')[1])
  }

  /** Sweeps, and insists that exactly this was found, counted and gone afterwards. */
  async function finds(...kinds: OrphanKind[]): Promise<void> {
    const expected = new Map<OrphanKind, number>()
    for (const kind of kinds) expected.set(kind, (expected.get(kind) ?? (await counted(kind))) + 1)
    assert.equal(await sweepRunsOnce(c.deps), kinds.length)
    for (const [kind, count] of expected) assert.equal(await counted(kind), count, kind)
    assert.equal(await sweepRunsOnce(c.deps), 0)
  }

  async function offered(): Promise<Held> {
    await aRun(c, { workflow: 'any' })
    const [offer] = await agent.poll(1)
    assert.ok(offer)
    await link.accept(offer)
    return { agent, link, offer }
  }

  /** A run that waits, in a process unless that was given up. */
  async function waiting(ask: Ask, ...then: Entry[]): Promise<RunId> {
    const { offer } = await offered()
    const park: Entry = ['park', Date.now(), ask.for === 'step' ? 'sleep' : ask.for, 5]
    await link.report(offer, 1, start(), open(ask), park, ...then)
    return offer.run
  }

  const parked = (ask: Ask = SLEEP) => waiting(ask)
  const evicted = (ask: Ask = SLEEP) => waiting(ask, end({ how: 'evicted', reason: 'age' }))

  /** Ends what a test leaves behind, so that the next poll has what the next test puts there. */
  async function clear(): Promise<void> {
    const status = ['queued', 'sleeping', 'awaiting_input', 'waiting_for_child'] as const
    const { runs } = await c.call(ops.runs.list, { org: c.org, status: [...status] })
    await Promise.all(runs.map((run) => c.call(ops.runs.cancel, { run: run.id })))
  }

  async function stop(): Promise<void> {
    agent.close()
    await c.stop()
  }

  const looks = { queueRow, timersOf, statusOf, placed, entryOf, resultOf, finds }
  return { c, agent, link, ...looks, offered, parked, evicted, clear, stop }
}
