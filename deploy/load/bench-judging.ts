import { createJudge, type Judge } from '@windlass/coordinator/judging/judge.ts'
import { type Schema, schemaOf } from '@windlass/coordinator/judging/schema.ts'
import { createLog } from '@windlass/shared/log.ts'
import { median } from './measure.ts'
import { atMost, type Report } from './row.ts'

const log = createLog({ process: 'bench' }, 'error')
const VALUES = 5000
const COLD_STARTS = 5
const CROWD = 64
const GOAL_MS = 0.2

const line = {
  type: 'object',
  properties: { count: { type: 'integer' }, name: { type: 'string' } },
  required: ['count'],
}
const order = { type: 'object', properties: { lines: { type: 'array', items: line }, to: { type: 'string' } } }
/** Some 200 bytes, as inputs and outputs mostly have. */
const text = JSON.stringify({ to: 'a'.repeat(40), lines: [1, 2, 3, 4].map((n) => ({ count: n, name: `item ${n}` })) })
const CHEAP = schemaOf('derived', order)!
/** The same with a pattern, which may take for ever. */
const COSTLY = schemaOf('derived', {
  ...order,
  properties: { ...order.properties, to: { type: 'string', pattern: '^a+$' } },
})!

/** What it takes to tell whether a small value fits its schema, by where that is done. */
export async function benchJudging(report: Report, repeats: number): Promise<void> {
  const judge = createJudge({ log })
  const rows = { here: [] as number[], warm: [] as number[], crowd: [] as number[], cold: [] as number[] }
  try {
    for (let i = -1; i < repeats; i++) {
      const round = {
        here: await oneByOneMs(judge, CHEAP, VALUES),
        warm: await oneByOneMs(judge, COSTLY, VALUES),
        crowd: await together(judge, VALUES),
        cold: await coldMs(),
      }
      // The first warms up.
      if (i < 0) continue
      for (const name of Object.keys(rows) as (keyof typeof rows)[]) rows[name].push(round[name])
    }
  } finally {
    await judge.close()
  }
  const row = (name: string, values: number[], goal?: number) => {
    const value = median(values)
    const limit = goal === undefined ? {} : { goal: atMost(value, goal, 'ms') }
    report({ name: `judging a value of 200 bytes, ${name}`, value, unit: 'ms', repeats: values, ...limit })
  }
  row('in the coordinator, p50', rows.here, GOAL_MS)
  row('in a child that is up, p50', rows.warm, GOAL_MS)
  row(`in a child, ${CROWD} at once, each`, rows.crowd)
  row('in a child that is started for it, p50', rows.cold)
}

async function judgeOne(judge: Judge, schema: Schema): Promise<void> {
  const verdict = await judge.judge(schema, { text }, { root: 'input', org: 'org' })
  if (verdict.is !== 'fits') throw new Error(`the value ${verdict.is}: ${verdict.invalid.message}`)
}

async function oneByOneMs(judge: Judge, schema: Schema, count: number): Promise<number> {
  const taken: number[] = []
  for (let n = 0; n < count; n++) {
    const since = performance.now()
    await judgeOne(judge, schema)
    taken.push(performance.now() - since)
  }
  return median(taken)
}

/** Milliseconds for each, with many waiting. */
async function together(judge: Judge, count: number): Promise<number> {
  let begun = 0
  const since = performance.now()
  const lane = async () => {
    while (begun++ < count) await judgeOne(judge, COSTLY)
  }
  await Promise.all(Array.from({ length: CROWD }, lane))
  return (performance.now() - since) / count
}

async function coldMs(): Promise<number> {
  const taken: number[] = []
  for (let n = 0; n < COLD_STARTS; n++) {
    const judge = createJudge({ log })
    taken.push(await oneByOneMs(judge, COSTLY, 1))
    await judge.close()
  }
  return median(taken)
}
