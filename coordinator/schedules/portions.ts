import type { Plan } from './plan.ts'

/** What one transaction writes, counted in runs: as many at once as of triggers. */
const RUNS_AT_ONCE = 256
/** What a pass writes. */
const RUNS_OF_PASS = 2048
/** An input of so many characters counts like one more run. */
const INPUT_CHARS_PER_RUN = 32 * 1024

/** Counted in runs. */
export function weightOf({ runs }: Pick<Plan, 'runs'>): number {
  return runs.reduce((sum, run) => sum + 1 + run.input.length / INPUT_CHARS_PER_RUN, 0)
}

type Weighty = Pick<Plan, 'runs'>

/**
 * As many as a pass writes, for which the ticks of others wait. An org that has no more than its share comes first, so
 * that what catches up keeps nobody waiting. Those that have more follow by lot: where the lightest of them came first,
 * others could keep the heaviest out of every pass.
 */
export function fitting<P extends Weighty>(ofOrgs: readonly (readonly P[])[], random = Math.random): P[] {
  const share = RUNS_OF_PASS / ofOrgs.length
  const sumOf = (own: readonly P[]) => own.reduce((sum, plan) => sum + weightOf(plan), 0)
  const inTurn = ofOrgs
    .map((own) => ({ own, turn: sumOf(own) <= share ? -1 : random() }))
    .toSorted((a, b) => a.turn - b.turn)
    .flatMap(({ own }) => own)
  let left = RUNS_OF_PASS
  return inTurn.filter((plan) => {
    const fits = left > 0
    left -= weightOf(plan)
    return fits
  })
}

/** What is written by one transaction each: a hundred schedules that catch up may start ten thousand runs. */
export function pieces<P extends Weighty>(plans: readonly P[]): P[][] {
  const all: P[][] = []
  let left = 0
  for (const plan of plans) {
    const weight = weightOf(plan)
    if (all.length === 0 || weight > left) {
      all.push([])
      left = RUNS_AT_ONCE
    }
    all.at(-1)!.push(plan)
    left -= weight
  }
  return all
}
