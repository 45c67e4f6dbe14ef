import assert from 'node:assert/strict'
import type { Completion, JournalOp, JournalRecord } from '@windlass/shared/wire/journal.ts'

/** What the coordinator does with a journal, in memory. */
export interface World {
  readonly records: Map<number, JournalRecord>
  attempt: number
  now: number
  apply(op: JournalOp): void
  /** When the next of what is waited for will be there. */
  nextAt(): number
  /** Lets the next thing happen. */
  completeNext(): Completion
  journal(): JournalRecord[]
  /** How often a call was begun, by kind, name and what does not change of its arguments. */
  readonly begun: Map<string, number>
}

/** `delayOf`: how long an entry takes, in a time of its own. */
export function aWorld(delayOf: (record: JournalRecord) => number): World {
  const records = new Map<number, JournalRecord>()
  const due = new Map<number, number>()
  const begun = new Map<string, number>()
  let completions = 0

  function add(op: Extract<JournalOp, { op: 'open' | 'close' }>, more: Partial<JournalRecord>): JournalRecord {
    const { entry } = op
    const known = records.get(entry.n)
    if (known) assert.deepEqual([known.kind, known.name, known.parent], [entry.kind, entry.name, entry.parent])
    const fresh = { state: 'open', result: null, delivered: null, after: 0, idle: false, completed: null } as const
    const record = { ...fresh, ...known, ...entry, attempt: world.attempt, ...more }
    records.set(entry.n, record)
    return record
  }

  function found(n: number): JournalRecord {
    const record = records.get(n)
    assert.ok(record, `there is no entry ${n}`)
    return record
  }

  const world: World = {
    records,
    attempt: 1,
    now: 0,
    begun,
    apply: (op) => {
      if (op.op === 'open') {
        assert.equal(records.has(op.entry.n), false, `entry ${op.entry.n} is opened twice`)
        const record = add(op, {})
        if (record.kind === 'step') return
        due.set(record.n, world.now + delayOf(record))
        const key = `${record.parent} ${record.kind} ${record.name} ${stable(record.args)}`
        begun.set(key, (begun.get(key) ?? 0) + 1)
      } else if (op.op === 'close') add(op, { state: op.state, result: op.result })
      else if (op.op === 'adopt') Object.assign(found(op.n), { attempt: world.attempt, delivered: null })
      else if (op.op === 'drift') assert.equal(found(op.n).attempt, world.attempt)
      else for (const [order, n, after, idle] of op.list) deliver(order, n, after, idle)
    },
    nextAt: () => Math.min(...due.values()),
    completeNext: () => {
      const [n, at] = [...due].reduce((first, each) => (each[1] < first[1] ? each : first))
      due.delete(n)
      world.now = Math.max(world.now, at)
      const completion = { n, ...resultOf(found(n)) }
      completions += 1
      Object.assign(found(n), completion, { completed: completions })
      return completion
    },
    journal: () =>
      // In no order: whoever reads it must not rely on one.
      [...records.values()]
        .map((record) => ({ ...record, completed: record.delivered === null ? record.completed : null }))
        .toReversed(),
  }

  function deliver(order: number, n: number, after: number, idle: 0 | 1): void {
    const record = found(n)
    assert.notEqual(record.state, 'open', `entry ${n} is delivered before it is there`)
    assert.equal(record.delivered, null, `entry ${n} is delivered twice`)
    for (const other of records.values()) assert.ok(other.attempt !== world.attempt || other.delivered !== order)
    Object.assign(record, { delivered: order, after, idle: idle === 1 })
  }

  return world
}

/** What somebody answers: nothing of chance is in it. */
function resultOf({ kind, name, args }: JournalRecord): Pick<Completion, 'state' | 'result'> {
  if (kind === 'sleep') return { state: 'done', result: 'null' }
  if (name.startsWith('fails'))
    return { state: 'failed', result: JSON.stringify({ name: 'Error', message: `no ${name}` }) }
  return { state: 'done', result: JSON.stringify(`${kind}:${name}:${stable(args)}`) }
}

/** Without what is another at each call: it stands in a field `chance`. */
export function stable(args: string): string {
  return args.replace(/"chance":[\d.e-]+/, '')
}
