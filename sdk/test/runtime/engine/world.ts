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
  /** What is there of this attempt's entries, and has not been given to the program. */
  undelivered(): Completion[]
  /** What a new process is handed. */
  journal(): JournalRecord[]
  /** Number of the last entry. */
  entries(): number
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
    const fresh = { state: 'open', result: null, drifted: false, delivered: null, after: 0, idle: false } as const
    const record = { ...fresh, completed: null, ...known, ...entry, attempt: world.attempt, ...more }
    assertPlace(record.n, record.position)
    records.set(entry.n, record)
    return record
  }

  function assertPlace(n: number, position: number): void {
    for (const other of records.values()) {
      const isSame = other.n !== n && other.attempt === world.attempt && other.position === position
      assert.ok(!isSame, `entries ${n} and ${other.n} stand at the same place ${position}`)
    }
  }

  /** Whatever has come of it since it was handed over. */
  function adopt(n: number, position: number): void {
    const record = found(n)
    assert.ok(record.attempt < world.attempt, `entry ${n} is of this attempt already`)
    assertPlace(n, position)
    Object.assign(record, { attempt: world.attempt, position, delivered: null, after: 0, idle: false })
  }

  function drift(n: number): void {
    const record = found(n)
    assert.deepEqual([record.attempt, record.drifted], [world.attempt, false], `entry ${n} drifts`)
    record.drifted = true
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
      else if (op.op === 'adopt') adopt(op.n, op.position)
      else if (op.op === 'drift') drift(op.n)
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
    undelivered: () =>
      [...records.values()]
        .filter((each) => each.attempt === world.attempt && each.completed !== null && each.delivered === null)
        .sort((a, b) => a.completed! - b.completed!)
        .map(({ n, state, result }) => ({ n, state: state === 'failed' ? 'failed' : 'done', result: result! })),
    journal: () =>
      // In no order: whoever reads it must not rely on one.
      [...records.values()]
        .filter(({ attempt, state }) => attempt === world.attempt || state !== 'failed')
        .map((record) => ({ ...record, completed: record.delivered === null ? record.completed : null }))
        .toReversed(),
    entries: () => Math.max(0, ...records.keys()),
  }

  function deliver(order: number, n: number, after: number, idle: 0 | 1): void {
    const record = found(n)
    assert.equal(record.attempt, world.attempt, `entry ${n} is of an earlier attempt`)
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
