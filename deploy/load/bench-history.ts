import { sqlId } from '@windlass/coordinator/test/_kit/sql-ids.ts'
import type { BenchInstance } from './bench-instance.ts'
import { median } from './measure.ts'
import { type Offers, openOffers } from './offers.ts'
import { atMost, type Report } from './row.ts'
import { load } from './settled.ts'

/** Number of old events; `WINDLASS_BENCH_EVENTS` changes it. */
const EVENTS = Number(process.env['WINDLASS_BENCH_EVENTS'] ?? 10_000_000)
const EVENTS_PER_RUN = 100
/** A statement inserts the events of so many runs: some 200 MB, in a second or two. */
const RUNS_AT_ONCE = 5000
const SAMPLES = 400
const SLOTS = 64
const WARM_UP = 2000

interface Times {
  /** From the call of a trigger until an agent has the offer, in milliseconds. */
  offers: number[]
  /** Mean time of the claim's statement in PostgreSQL, one entry for each repeat, in milliseconds. */
  statements: number[]
}

/** Claims of one run at a time, in a database without old events and then beside very many of this month. */
export async function benchHistory(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  await instance.db`create extension if not exists pg_stat_statements`
  const offers = await openOffers(instance, SLOTS)
  const times = async () => {
    await load(instance, { slug: 'noop-fresh', runs: WARM_UP, callers: SLOTS })
    const found: Times = { offers: [], statements: [] }
    for (let i = 0; i < repeats; i++) await claimOneByOne(instance, offers, found)
    return found
  }
  const none = await times()
  await addEvents(instance)
  const many = await times()
  offers.close()
  reportTimes(report, none, many)
}

async function claimOneByOne({ db }: BenchInstance, offers: Offers, into: Times): Promise<void> {
  await db`select pg_stat_statements_reset()`
  const times: number[] = []
  for (let i = 0; i < SAMPLES; i++) times.push(await offers.next())
  into.offers.push(median(times))
  const [row] = await db<[{ ms: number }]>`
    select (sum(total_exec_time) / sum(calls))::float8 as ms
    from pg_stat_statements
    where query like '%delete from run_queue%' and query like '%insert into placements%'`
  into.statements.push(row.ms)
}

/** Events of this month, in the partition that new runs write to. */
async function addEvents({ db }: BenchInstance): Promise<void> {
  for (let begun = 0; begun < EVENTS / EVENTS_PER_RUN; begun += RUNS_AT_ONCE)
    await db`
      insert into run_events (run_id, cursor, at, channel, type, data)
      select id, cursor, 0, 'log', 'log.stdout', '{"text":"a line of a log, as programs write them"}'
      from generate_series(${begun}::int, ${begun + RUNS_AT_ONCE - 1}::int) as n
      cross join lateral (select ${sqlId(db, 'run', db`${Date.now()}::bigint`, db`n`)} as id) as made
      cross join generate_series(1, ${EVENTS_PER_RUN}::int) as cursor`
}

function reportTimes(report: Report, none: Times, many: Times): void {
  const row = (what: string, key: keyof Times) => {
    const ratios = many[key].map((value, i) => value / none[key][i]!)
    const ratio = median(ratios)
    report({ name: `${what}, without old events`, value: median(none[key]), unit: 'ms', repeats: none[key] })
    report({
      name: `${what}, beside ${EVENTS.toLocaleString('en')} old events`,
      value: median(many[key]),
      unit: 'ms',
      repeats: many[key],
      ratio: { to: 'without', value: ratio, repeats: ratios },
      goal: atMost(ratio, 1.05, '×'),
    })
  }
  row('trigger → offer p50', 'offers')
  row('claim: in the database', 'statements')
}
