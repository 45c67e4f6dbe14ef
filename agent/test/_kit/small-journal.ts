import type { JournalOp, JournalRecord } from '@windlass/shared/wire/journal.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import type { FakeCoordinator, FakePlacement } from './fake-coordinator.ts'
import { isParked } from './durable.ts'

/** What a coordinator would have recorded of these placements of one run, as far as the tests need it. */
export function recordsOf(placements: readonly FakePlacement[]): Map<number, JournalRecord> {
  const records = new Map<number, JournalRecord>()
  for (const placement of placements) {
    for (const entry of placement.entries) if (entry[0] === 'j') apply(records, JSON.parse(entry[2]) as JournalOp)
  }
  return records
}

function apply(records: Map<number, JournalRecord>, op: JournalOp): void {
  const fresh = { attempt: 1, drifted: false, delivered: null, after: 0, idle: false, completed: null }
  if (op.op === 'open') records.set(op.entry.n, { ...op.entry, ...fresh, state: 'open', result: null })
  if (op.op === 'close') records.set(op.entry.n, { ...op.entry, ...fresh, state: op.state, result: op.result })
  if (op.op !== 'deliver') return
  for (const [delivered, n, after, idle] of op.list) {
    const record = records.get(n)
    if (!record) continue
    // What others complete is completed by the test, which keeps no account of its own.
    const done = record.state === 'open' ? ({ state: 'done', result: 'null' } as const) : {}
    Object.assign(record, done, { delivered, after, idle: idle === 1 })
  }
}

/** Leads a run of sleeps to its end: every sleep is over as soon as nothing else is left to do. */
export async function playThrough(fake: FakeCoordinator, first: FakePlacement): Promise<FakePlacement[]> {
  const placements = [first]
  for (;;) {
    const placement = placements.at(-1)!
    await until('it waits or ends', () => isParked(placement) || placement.entries.at(-1)?.[0] === 'end')
    const last = placement.entries.at(-1)!
    const count = placement.entries.length
    if (last[0] === 'end' && last[2].how !== 'evicted') return placements
    const records = recordsOf(placements)
    const open = [...records.values()].filter((record) => record.kind === 'sleep' && record.state === 'open')
    if (last[0] === 'end') placements.push(again(fake, placement, records, open))
    else
      fake.send({
        t: 'wake',
        runs: [{ run: placement.offer.run, epoch: placement.offer.epoch, completions: open.map(overNow) }],
      })
    await until('it goes on', () => placements.at(-1) !== placement || placement.entries.length > count)
  }
}

const overNow = ({ n }: JournalRecord) => ({ n, state: 'done' as const, result: 'null' })

function again(
  fake: FakeCoordinator,
  placement: FakePlacement,
  records: Map<number, JournalRecord>,
  open: JournalRecord[],
): FakePlacement {
  for (const [index, record] of open.entries())
    Object.assign(record, { state: 'done', result: 'null', completed: index + 1 })
  const { run, bundle, epoch, inputText, secrets } = placement.offer
  const journal = { entries: records.size, text: JSON.stringify([...records.values()]) }
  return fake.offer(fake.bundles.get(bundle.digest)!, {
    run,
    epoch: epoch + 1,
    inputText,
    secrets,
    replay: true,
    journal,
  })
}
