import * as fc from 'fast-check'
import type { WaitCall } from '../../../runtime/waits.ts'
import type { Program, Tools } from './process.ts'

/** A program as data. */
export type Plan =
  | { do: 'sleep'; id: number; ms: number }
  | { do: 'input' | 'child' | 'drifts'; id: number }
  | { do: 'step'; id: number }
  | { do: 'raw'; ms: number }
  | { do: 'within'; id: number; body: Plan }
  | { do: 'seq' | 'all' | 'race'; parts: Plan[] }

// Few, so that equal calls come up.
const id = fc.integer({ min: 0, max: 4 })

export interface PlanOptions {
  races: boolean
  raw: boolean
  drifts: boolean
}

/** What is raw does not stand in a race: who comes first there is nobody's to keep. */
export function plans({ races, raw, drifts }: PlanOptions): fc.Arbitrary<Plan> {
  const calls: fc.Arbitrary<Plan>[] = [
    fc.record({ do: fc.constant('sleep' as const), id, ms: fc.constantFrom(5, 40, 900, 1_000, 60_000) }),
    fc.record({ do: fc.constantFrom('input' as const, 'child' as const), id }),
    fc.record({ do: fc.constant('step' as const), id }),
    ...(drifts ? [fc.record({ do: fc.constant('drifts' as const), id })] : []),
  ]
  const raws = raw ? [fc.record({ do: fc.constant('raw' as const), ms: fc.integer({ min: 0, max: 30 }) })] : []
  const size = { depthSize: 'small' } as const
  const { plan } = fc.letrec<{ plan: Plan; rawless: Plan }>((tie) => ({
    plan: fc.oneof(
      { ...size, maxDepth: 3 },
      fc.oneof(...calls, ...raws),
      ...inside(tie('plan')),
      ...(races ? [race(tie('rawless'))] : []),
    ),
    rawless: fc.oneof({ ...size, maxDepth: 2 }, fc.oneof(...calls), ...inside(tie('rawless')), race(tie('rawless'))),
  }))
  return plan
}

function inside(plan: fc.Arbitrary<Plan>): fc.Arbitrary<Plan>[] {
  const parts = fc.array(plan, { minLength: 1, maxLength: 3 })
  return [
    fc.record({ do: fc.constant('seq' as const), parts }),
    fc.record({ do: fc.constant('seq' as const), parts }),
    fc.record({ do: fc.constant('all' as const), parts }),
    fc.record({ do: fc.constant('within' as const), id, body: plan }),
  ]
}

function race(plan: fc.Arbitrary<Plan>): fc.Arbitrary<Plan> {
  return fc.record({ do: fc.constant('race' as const), parts: fc.array(plan, { minLength: 2, maxLength: 3 }) })
}

export interface Seen {
  /** What each branch of the program has seen, in its order. */
  branches: Map<string, unknown[]>
  /** How often the function of a step was executed, by its branch. */
  executed: Map<string, number>
  /** Those that were called, by the same. */
  steps?: Set<string>
}

/** The plan as a program. What a branch has seen goes into what it asks next, so that no wrong turn stays unseen. */
export function programOf(plan: Plan, seen: Seen): Program {
  return async (tools) => {
    seen.branches.clear()
    return await follow(plan, tools, seen, '')
  }
}

async function follow(plan: Plan, tools: Tools, seen: Seen, branch: string): Promise<unknown> {
  switch (plan.do) {
    case 'seq': {
      let last: unknown = null
      for (const part of plan.parts) last = [plan.parts.indexOf(part), await follow(part, tools, seen, branch)]
      return last
    }
    case 'all':
      return await Promise.all(
        branches(plan.parts, seen, branch).map(([part, name]) => follow(part, tools, seen, name)),
      )
    case 'race': {
      const parts = branches(plan.parts, seen, branch)
      const racing = parts.map(async ([part, name], at) => [at, await follow(part, tools, seen, name)])
      return note(seen, branch, await Promise.race(racing))
    }
    case 'raw':
      await tools.raw(plan.ms)
      return note(seen, branch, 'raw')
    case 'within': {
      const inner = `${branch}<${countOf(seen, branch)}`
      return note(
        seen,
        branch,
        await tools.engine.step(`within ${plan.id}`, () => follow(plan.body, tools, seen, inner)),
      )
    }
    case 'step': {
      const key = `${branch} ${plan.id} after ${countOf(seen, branch)}`
      seen.steps?.add(key)
      const act = () => {
        seen.executed.set(key, (seen.executed.get(key) ?? 0) + 1)
        if (plan.id === 0) throw new RangeError(`step ${plan.id}`)
        return new Map([[plan.id, 1n]])
      }
      return note(seen, branch, await quietly(tools.engine.step(`step ${plan.id}`, act)))
    }
    default:
      return note(seen, branch, await quietly(tools.engine.wait(callOf(plan, branch, seen.branches.get(branch) ?? []))))
  }
}

/** Each with a name of its own: who lost a race goes on, beside those that come after it. */
function branches(parts: Plan[], seen: Seen, branch: string): [Plan, name: string][] {
  const fork = `${branch}.${countOf(seen, branch)}`
  return parts.map((part, at) => [part, `${fork}.${at}`])
}

function countOf(seen: Seen, branch: string): number {
  return seen.branches.get(branch)?.length ?? 0
}

function note(seen: Seen, branch: string, value: unknown): unknown {
  const before = seen.branches.get(branch) ?? []
  seen.branches.set(branch, [...before, value])
  return value
}

async function quietly(promise: Promise<unknown>): Promise<unknown> {
  try {
    const value = await promise
    return value instanceof Map
      ? [...value].map(([key, count]) => `${String(key)}=${String(count)}`).join()
      : (value ?? 'nothing')
  } catch (error) {
    return String(error)
  }
}

type CallPlan = Extract<Plan, { do: 'sleep' | 'input' | 'child' | 'drifts' }>

function callOf(plan: CallPlan, branch: string, before: unknown[]): WaitCall {
  const toError = ({ message }: { message: string }) => new Error(message)
  if (plan.do === 'sleep')
    return { kind: 'sleep', name: '', args: plan.ms, ask: { for: 'sleep', ms: plan.ms }, toError }
  const name = `${plan.id === 1 ? 'fails' : 'works'} ${plan.id}`
  const args = { before: JSON.stringify(before).length, ...(plan.do === 'drifts' && { branch, chance: Math.random() }) }
  if (plan.do === 'input') {
    const ask = { for: 'input', prompt: name, schemaText: null, timeoutMs: null, onTimeoutText: null } as const
    return { kind: 'input', name, args, ask, toError }
  }
  const inputText = JSON.stringify(args)
  return {
    kind: 'child',
    name,
    args,
    ask: { for: 'child', workflow: name, inputText, version: null, tags: [], priority: 0 },
    toError,
  }
}
