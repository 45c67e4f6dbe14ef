/**
 * How often a test repeats what it does. In `npm test` a few times, in `npm run test:storm` many times, or as long as
 * the budget of the storm lasts. WINDLASS_TEST_ROUNDS asks for an exact number in both.
 */
export interface RoundsAsk {
  /** Rounds in `npm test`. */
  test: number
  /** Rounds in a storm without a budget. */
  storm: number
  /** Rounds that a storm plays even when its budget is used up; `test` by default. */
  least?: number
}

/**
 * Numbers the rounds from 0. The budget is looked at between two rounds; a round that has begun is played to its end.
 */
export function* rounds({ test, storm, least = test }: RoundsAsk): Generator<number, void, void> {
  const asked = numberFrom('WINDLASS_TEST_ROUNDS')
  const budget = budgetMs()
  const isStorm = process.env.WINDLASS_TEST_TIER === 'storm'
  const most = asked ?? (isStorm ? (budget === undefined ? storm : Infinity) : test)
  const end = asked === undefined && budget !== undefined ? startedAt + budget : Infinity
  for (let n = 0; n < most && (n < least || performance.now() < end); n++) yield n
}

/**
 * How many of something a single round has: `storm` of them in a storm, `test` of them in `npm test`. With
 * WINDLASS_TEST_TIMES=20 it has twenty times as many, for whoever wants to wait.
 */
export function amount({ test, storm }: { test: number; storm: number }): number {
  return (process.env.WINDLASS_TEST_TIER === 'storm' ? storm : test) * (numberFrom('WINDLASS_TEST_TIMES') ?? 1)
}

/** The budget of a storm for one process of tests, in milliseconds; undefined where it has none. */
export const budgetMs = () => numberFrom('WINDLASS_TEST_BUDGET_MS')

/** The budget covers the whole file, its set-up included. */
const startedAt = performance.now()

function numberFrom(name: string): number | undefined {
  const given = process.env[name]
  if (given === undefined || given === '') return undefined
  if (/^[1-9]\d{0,8}$/.test(given)) return Number(given)
  throw new Error(`${name} is a whole number above 0, not ${given}`)
}
