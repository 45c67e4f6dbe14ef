import type { Completion, JournalRecord } from '@windlass/shared/wire/journal.ts'
import { describe, inWords, type Call } from './call.ts'
import { createRecords } from './records.ts'

interface ReplayHooks {
  /** The call is the one of this entry. */
  bind(record: JournalRecord, call: Call): void
  give(completion: Completion): void
  drifted(n: number, args: string): void
  block(expected: string, received: string, at: string): void
}

/** again: something has happened, come back · live: what the program wants next is new · park: it has nothing new to get */
type ReplayTurn = 'again' | 'live' | 'park' | 'blocked'

/**
 * Leads a program to where its last process stood. It is given what that one was given, in the same order and at the same points;
 * a call that is not recorded is held until nothing else can happen.
 */
interface Replay {
  isOver(): boolean
  /** False: the call is not recorded like this. */
  take(call: Call): boolean
  hold(call: Call): void
  /** Results that are there, and that the last process has not been given, in the order in which they came. */
  waiting(): Completion[]
  /** Gives the next result if it was given in the midst of other work. False: nothing to do before the program is idle. */
  step(): boolean
  idle(): ReplayTurn
  /** The program did what it could not have done here: `received`, in words. */
  block(received: string): void
  /** The calls that were held. */
  finish(): Call[]
}

export function createReplay(journal: readonly JournalRecord[], hooks: ReplayHooks): Replay {
  const records = createRecords(journal)
  let held: Call[] = []
  let isOver = false

  function issue(record: JournalRecord, call: Call): void {
    records.issue(record)
    hooks.bind(record, call)
  }

  function give(record: JournalRecord): void {
    records.given()
    hooks.give({ n: record.n, state: record.state === 'failed' ? 'failed' : 'done', result: record.result ?? 'null' })
  }

  /** One at a time: what is bound may lead to the very call that the others are not. */
  function bindNearest(): boolean {
    const found = records.nearest(held)
    if (!found) return false
    held = held.filter((call) => call !== found.call)
    if (!found.record.drifted) hooks.drifted(found.record.n, found.call.args)
    issue(found.record, found.call)
    return true
  }

  function block(received: string, at: string): 'blocked' {
    hooks.block(expected(), received, at)
    return 'blocked'
  }

  function expected(): string {
    for (const record of records.unissued()) return describe(record)
    const next = records.next()
    if (next) return `the result of ${describe(next)}`
    const open = journal.find(({ state, kind }) => state === 'open' && kind !== 'step')
    return `a program that waits for ${open ? describe(open) : 'something'}`
  }

  return {
    isOver: () => isOver,
    take: (call) => {
      const record = records.match(call)
      if (record) issue(record, call)
      return record !== undefined
    },
    hold: (call) => {
      held.push(call)
    },
    waiting: () =>
      journal
        .filter(({ state, delivered }) => state !== 'open' && delivered === null)
        .sort((a, b) => (a.completed ?? Infinity) - (b.completed ?? Infinity) || a.n - b.n)
        .map(({ n, state, result }) => ({
          n,
          state: state === 'failed' ? 'failed' : 'done',
          result: result ?? 'null',
        })),
    step: () => {
      const next = records.next()
      if (!next || next.idle || !records.isReady(next)) return false
      give(next)
      return true
    },
    idle: () => {
      const next = records.next()
      if (next && records.isReady(next)) {
        give(next)
        return 'again'
      }
      if (held.length > 0 && !records.hasUnissued()) return 'live'
      if (held.length > 0 && bindNearest()) return 'again'
      const [first] = held
      if (first) return block(inWords(first), first.site)
      if (next || records.hasUnissued()) return block('no further call: the program waits for something else', '')
      return 'park'
    },
    block: (received) => void block(received, ''),
    finish: () => {
      isOver = true
      return held
    },
  }
}
