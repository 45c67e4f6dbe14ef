/** What agents say of runs, by chance: in order, again, with gaps, under another placement. */
import assert from 'node:assert/strict'
import * as fc from 'fast-check'
import { MOST_LEVELS } from '@windlass/shared/json-nesting.ts'
import { AROUND_EVENT_BYTES } from '@windlass/shared/model/event.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { EntryIdentity, JournalOp } from '@windlass/shared/wire/journal.ts'
import { readOp } from '../../engine/rules/parse-op.ts'
import type { ReadBatch } from '../../engine/rules/batch.ts'
import { oddText, type Owner, type RunState } from './random-runs.ts'
import type { RunId } from '@windlass/shared/ids.ts'

/** What an event may have here, so that a short text is too much for one. */
export const EVENT_DATA_BYTES = 1024

export interface SaidBatch {
  entries: SaidEntry[]
  /** How far its first number is from the next one; below 0 it was sent before, above 0 some are missing. */
  off: number
  /** Sent again: the batch before it comes whole, and so many of its entries are left out at its beginning. */
  again: number | null
  epochOff: number
  isOther: boolean
}

/** A line of a log, or the result of a step; its number counts from the last entry that the run had at first. */
type SaidEntry = { e: Entry } | { from: number; close: Omit<Extract<JournalOp, { op: 'close' }>, 'op'> }

const dataText = fc.oneof(
  { withCrossShrink: true },
  { arbitrary: oddText.map((text) => JSON.stringify({ text })), weight: 6 },
  { arbitrary: oddText.map((text) => JSON.stringify({ [text]: [text, null] }, null, '\n')), weight: 2 },
  { arbitrary: oddText, weight: 1 },
  {
    arbitrary: fc.constantFrom('[]', 'null', '{"text":', '{"text":"\ud800"}', '{"a":"\0"}', '{"a":1}\n', ' {}'),
    weight: 1,
  },
  {
    arbitrary: fc.constantFrom(
      JSON.stringify({ text: 'é'.repeat((EVENT_DATA_BYTES + AROUND_EVENT_BYTES) / 2) }),
      JSON.stringify({ text: 'e'.repeat(EVENT_DATA_BYTES + AROUND_EVENT_BYTES - 11) }),
      '{"a":'.repeat(MOST_LEVELS + 1) + '1' + '}'.repeat(MOST_LEVELS + 1),
    ),
    weight: 1,
  },
)

const event = fc
  .tuple(
    fc.constantFrom(0, 1_700_000_000_000, 8.64e15),
    fc.oneof(
      { arbitrary: fc.constantFrom('log.stdout', 'log.stderr', 'phase', 'log.gap'), weight: 9 },
      { arbitrary: fc.oneof(oddText, fc.constantFrom('output', 'run.completed', 'toString', 'a\0')), weight: 1 },
    ),
    dataText,
  )
  .map(([at, type, text]): SaidEntry => ({ e: ['e', at, type, text] }))

const longText = oddText.map((text) => text.repeat(100).slice(0, 400).toWellFormed())
const identity: fc.Arbitrary<Omit<EntryIdentity, 'n'>> = fc.record({
  position: fc.integer({ min: 1, max: 9 }),
  parent: fc.oneof(fc.constant(''), oddText, longText),
  kind: fc.constantFrom('step', 'step', 'step', 'sleep'),
  name: fc.oneof(oddText, longText),
  hash: oddText,
  occurrence: fc.integer({ min: 1, max: 3 }),
  args: fc.oneof(oddText, longText),
  site: oddText,
})

const close = fc
  .record({
    from: fc.integer({ min: -4, max: 4 }),
    identity,
    state: fc.constantFrom('done' as const, 'done' as const, 'failed' as const),
    result: oddText.map((text) => JSON.stringify(text)),
  })
  .map(({ from, identity, state, result }): SaidEntry => {
    return { from, close: { entry: { n: 0, ...identity }, state, result } }
  })

const entries = fc.array(fc.oneof({ arbitrary: event, weight: 3 }, { arbitrary: close, weight: 2 }), {
  minLength: 1,
  maxLength: 5,
})

/** Follows on what was sent before. */
export const nextBatch: fc.Arbitrary<SaidBatch> = entries.map((said) => {
  return { entries: said, off: 0, again: null, epochOff: 0, isOther: false }
})

export const anyBatch: fc.Arbitrary<SaidBatch> = fc.oneof(
  { arbitrary: nextBatch, weight: 4 },
  {
    arbitrary: fc.record({
      entries,
      off: fc.constantFrom(0, 0, 0, -1, -2, -4, 1, 3),
      again: fc.constantFrom(null, null, 0, 1, 2),
      epochOff: fc.constantFrom(0, 0, 0, 0, -1, 1),
      isOther: fc.constantFrom(false, false, false, false, true),
    }),
    weight: 3,
  },
)

/** The batches of one run in their order, as they would be sent of the run with this id. */
export function batchesOf(said: readonly SaidBatch[], state: RunState, owner: Owner): ((id: RunId) => ReadBatch)[] {
  let next = state.seq + 1
  let before: { first: number; entries: SaidEntry[] } = { first: next, entries: [] }
  return said.map(({ entries, off, again, epochOff, isOther }) => {
    const repeated = again === null ? [] : before.entries.slice(again)
    const first = Math.max(1, again === null ? next + off : before.first + before.entries.length - repeated.length)
    before = { first, entries: [...repeated, ...entries] }
    next = Math.max(next, first + before.entries.length)
    const more = { epoch: Math.max(0, state.epoch + epochOff), runnerId: isOther ? owner.other : owner.ours }
    const read = readEntries(before.entries, state)
    return (id) => ({ run: id, orgId: owner.orgId, first, outputs: new Map(), ...more, ...read })
  })
}

function readEntries(said: readonly SaidEntry[], { entries: last }: RunState): Pick<ReadBatch, 'entries' | 'commands'> {
  const commands = new Map<Entry, { op: JournalOp }>()
  const entries = said.map((one): Entry => {
    if ('e' in one) return one.e
    const n = Math.min(Math.max(1, last + one.from), 25_000)
    const text = JSON.stringify({ op: 'close', ...one.close, entry: { ...one.close.entry, n } })
    const op = readOp(text)
    assert.ok(op, `cannot be read: ${text}`)
    const entry: Entry = ['j', 0, text]
    commands.set(entry, { op })
    return entry
  })
  return { entries, commands }
}
