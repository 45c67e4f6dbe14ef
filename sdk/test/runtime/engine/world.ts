import assert from 'node:assert/strict'
import type { LedBy } from '@windlass/shared/model/ending.ts'
import type { Completion, JournalOp, JournalRecord } from '@windlass/shared/wire/journal.ts'
import { callOf } from '../../../runtime/engine/identity.ts'

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
  /** Those failures to which what the program has thrown leads. */
  ledBy: LedBy | undefined
  /** The program has thrown, and is tried again. */
  threw(): void
  /** What a new process is handed. */
  journal(): JournalRecord[]
  /** Number of the last entry. */
  entries(): number
  /** How often a call was begun, by kind, name and what does not change of its arguments. */
  readonly begun: Map<string, number>
}

type Answer = Pick<Completion, 'state' | 'result'>

/** What comes of an entry, which is the `count`th of its kind, name and arguments that was begun. */
export type AnswerOf = (record: JournalRecord, count: number) => Answer

/** `delayOf`: how long an entry takes, in a time of its own. */
export function aWorld(delayOf: (record: JournalRecord) => number, answerOf: AnswerOf = resultOf): World {
  return new MemoryWorld(delayOf, answerOf)
}

class MemoryWorld implements World {
  readonly records = new Map<number, JournalRecord>()
  readonly begun = new Map<string, number>()
  attempt = 1
  now = 0
  ledBy: LedBy | undefined
  readonly #delayOf: (record: JournalRecord) => number
  readonly #answerOf: AnswerOf
  /** Which of its kind an entry is. */
  readonly #counts = new Map<number, number>()
  /** When that is there which is waited for, by the number of the entry. */
  readonly #due = new Map<number, number>()
  #completions = 0
  /** Attempts that threw: all others were lost. */
  readonly #thrown = new Set<number>()

  constructor(delayOf: (record: JournalRecord) => number, answerOf: AnswerOf) {
    this.#delayOf = delayOf
    this.#answerOf = answerOf
  }

  apply(op: JournalOp): void {
    if (op.op === 'open') this.#open(op)
    else if (op.op === 'close') this.#add(op, { state: op.state, result: op.result })
    else if (op.op === 'adopt') this.#adopt(op.n, op.position)
    else if (op.op === 'drift') this.#drift(op.n)
    else for (const delivery of op.list) this.#deliver(...delivery)
  }

  nextAt(): number {
    return Math.min(...this.#due.values())
  }

  completeNext(): Completion {
    const [n, at] = [...this.#due].reduce((first, each) => (each[1] < first[1] ? each : first))
    this.#due.delete(n)
    this.now = Math.max(this.now, at)
    const completion = { n, ...this.#answerOf(this.#found(n), this.#counts.get(n) ?? 0) }
    this.#completions += 1
    Object.assign(this.#found(n), completion, { completed: this.#completions })
    return completion
  }

  undelivered(): Completion[] {
    return [...this.records.values()]
      .filter((each) => each.attempt === this.attempt && each.completed !== null && each.delivered === null)
      .sort((a, b) => a.completed! - b.completed!)
      .map(({ n, state, result }) => ({ n, state: state === 'failed' ? 'failed' : 'done', result: result! }))
  }

  /** In no order: whoever reads it must not rely on one. */
  journal(): JournalRecord[] {
    const isLost = ({ attempt }: JournalRecord) => attempt < this.attempt && !this.#thrown.has(attempt)
    return [...this.records.values()].map((record) => ({ ...record, lost: isLost(record) })).toReversed()
  }

  threw(): void {
    const records = [...this.records.values()]
    const own = records.filter(({ attempt, delivered }) => attempt === this.attempt && delivered !== null)
    const last = own.sort((a, b) => b.delivered! - a.delivered!)[0]
    if (this.ledBy) this.#carry(own, this.ledBy)
    const takenBack = records.filter(
      ({ state, delivered, former, after }) => state === 'failed' && delivered === null && !former && after > 0,
    )
    const isLeftOut = (each: JournalRecord) =>
      takenBack.some(
        (back) => back.attempt === each.attempt && callOf(back) === callOf(each) && each.position > back.after,
      )
    const isBehind = (each: JournalRecord) =>
      callOf(each) === callOf(last!) &&
      each.occurrence > last!.occurrence &&
      each.attempt < this.attempt &&
      each.state !== 'failed' &&
      !isLeftOut(each)
    // What an attempt before, the last that was given it, has called behind it, and this one has not asked for.
    const [formerly, , after = Infinity] = last?.former ?? [0, 0]
    const isFurther = (each: JournalRecord) =>
      isBehind(each) ||
      (each.attempt === formerly && each.position > after && each.parent === last?.parent && each.state !== 'failed')
    const isReason = !this.ledBy || this.ledBy.last === last?.n
    if (last?.kind === 'step' && last.state === 'failed' && isReason && !records.some(isFurther))
      Object.assign(last, { delivered: null, former: null })
    this.#thrown.add(this.attempt)
    this.attempt += 1
  }

  /** What the attempt had got past before it was given why it threw. */
  #carry(own: readonly JournalRecord[], { first }: LedBy): void {
    const reason = this.#found(first)
    const called = [...this.records.values()].filter(({ attempt }) => attempt === this.attempt)
    for (const each of own) {
      const { attempt, delivered, after, former, state, parent } = each
      const hasBought = called.some(isBought(after, reason.after))
      const isBefore = delivered! < reason.delivered! && (Boolean(former) || hasBought)
      if (state === 'failed' && parent === '' && isBefore)
        Object.assign(each, { delivered: null, after: 0, former: [attempt, delivered!, after] })
    }
  }

  entries(): number {
    return Math.max(0, ...this.records.keys())
  }

  #open(op: Extract<JournalOp, { op: 'open' }>): void {
    assert.equal(this.records.has(op.entry.n), false, `entry ${op.entry.n} is opened twice`)
    const record = this.#add(op, {})
    if (record.kind === 'step') return
    this.#due.set(record.n, this.now + this.#delayOf(record))
    const key = `${record.parent} ${record.kind} ${record.name} ${stable(record.args)}`
    const count = (this.begun.get(key) ?? 0) + 1
    this.begun.set(key, count)
    this.#counts.set(record.n, count)
  }

  #add(op: Extract<JournalOp, { op: 'open' | 'close' }>, more: Partial<JournalRecord>): JournalRecord {
    const { entry } = op
    const known = this.records.get(entry.n)
    if (known) assert.deepEqual([known.kind, known.name, known.parent], [entry.kind, entry.name, entry.parent])
    const fresh = { state: 'open', result: null, drifted: false, delivered: null, after: 0, idle: false } as const
    const record = { ...fresh, completed: null, ...known, ...entry, attempt: this.attempt, ...more }
    this.#assertPosition(record.n, record.position)
    this.records.set(entry.n, record)
    return record
  }

  /** Whatever has come of it since it was handed over. */
  #adopt(n: number, position: number): void {
    const record = this.#found(n)
    assert.ok(record.attempt < this.attempt, `entry ${n} is of this attempt already`)
    this.#assertPosition(n, position)
    const given = [record.attempt, record.delivered!, record.after] as const
    const former = record.delivered === null ? record.former : given
    Object.assign(record, { attempt: this.attempt, position, delivered: null, after: 0, idle: false, former })
  }

  #drift(n: number): void {
    const record = this.#found(n)
    assert.deepEqual([record.attempt, record.drifted], [this.attempt, false], `entry ${n} drifts`)
    record.drifted = true
  }

  #deliver(order: number, n: number, after: number, idle: 0 | 1): void {
    const record = this.#found(n)
    assert.equal(record.attempt, this.attempt, `entry ${n} is of an earlier attempt`)
    assert.notEqual(record.state, 'open', `entry ${n} is delivered before it is there`)
    assert.equal(record.delivered, null, `entry ${n} is delivered twice`)
    for (const other of this.records.values()) assert.ok(other.attempt !== this.attempt || other.delivered !== order)
    Object.assign(record, { delivered: order, after, idle: idle === 1 })
  }

  #assertPosition(n: number, position: number): void {
    for (const other of this.records.values()) {
      const isSame = other.n !== n && other.attempt === this.attempt && other.position === position
      assert.ok(!isSame, `entries ${n} and ${other.n} stand at the same place ${position}`)
    }
  }

  #found(n: number): JournalRecord {
    const record = this.records.get(n)
    assert.ok(record, `there is no entry ${n}`)
    return record
  }
}

/** Something came of a call in these places, or may have. */
const isBought =
  (after: number, most: number) =>
  ({ position, state, kind }: JournalRecord) =>
    position > after && position <= most && (state === 'done' || state === 'open') && kind !== 'sleep'

/** What somebody answers: nothing of chance is in it. */
function resultOf({ kind, name, args }: JournalRecord): Answer {
  if (kind === 'sleep') return answered(null)
  if (name.startsWith('fails')) return failed(`no ${name}`)
  return answered(`${kind}:${name}:${stable(args)}`)
}

export const answered = (value: unknown): Answer => ({ state: 'done', result: JSON.stringify(value) })

export const failed = (message: string): Answer => ({
  state: 'failed',
  result: JSON.stringify({ name: 'Error', message }),
})

/** Without what is another at each call: it stands in a field `chance`. */
function stable(args: string): string {
  return args.replace(/"chance":[\d.e-]+/, '')
}
