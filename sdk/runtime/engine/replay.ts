import type { Completion, JournalRecord, Mismatch } from '@windlass/shared/wire/journal.ts'
import { describe, callText, type Call } from './call.ts'
import type { Alike } from './likeness.ts'
import { createRecords } from './records.ts'

interface ReplayHooks {
  /** The call is the one of this entry. */
  bind(record: JournalRecord, call: Call): void
  give(completion: Completion): void
  drifted(n: number, args: string): void
  block(mismatch: Mismatch): void
}

/**
 * again: something has happened, come back · live: what the program wants next is new · park: it has nothing new to
 * get · left: it did something else, as its agent is being stopped
 */
type ReplayTurn = 'again' | 'live' | 'park' | 'blocked' | 'left'

/**
 * Leads a program to where its last process stood. It is given what that one was given, in the same order and at the
 * same points; a call that is not recorded is held until nothing else can happen.
 */
export class Replay {
  readonly #journal: readonly JournalRecord[]
  readonly #records: ReturnType<typeof createRecords>
  readonly #hooks: ReplayHooks
  #held: Call[] = []
  /** What calls have got that are only like it, in a run that is to end. */
  readonly #likened = new Set<JournalRecord>()

  constructor(journal: readonly JournalRecord[], hooks: ReplayHooks) {
    this.#journal = journal
    this.#records = createRecords(journal)
    this.#hooks = hooks
  }

  /** The calls that were held, in their order; each once. */
  takeHeld(): Call[] {
    return this.#held.splice(0)
  }

  /** False: the call is not recorded like this. */
  take(call: Call): boolean {
    const record = this.#records.match(call)
    if (record) this.#issue(record, call)
    return record !== undefined
  }

  /**
   * What is recorded of the call, which has not been made here before; once. Also where another has got that by
   * likeness: a program that hears of its end may call more than before, and what this one has come to is no news.
   */
  recorded(call: Call): JournalRecord | undefined {
    const record = this.#records.match(call) ?? this.#records.match(call, this.#likened)
    if (!record) return undefined
    this.#likened.delete(record)
    this.#records.issue(record)
    return record
  }

  /** What is recorded of one of these calls with other arguments; once. */
  nearest(calls: readonly Call[]): Alike | undefined {
    const found = this.#records.nearest(calls)
    if (!found) return undefined
    this.#records.issue(found.record)
    this.#likened.add(found.record)
    return found
  }

  /** What is recorded, and was not called here. */
  unissued(): Iterable<JournalRecord> {
    return this.#records.unissued()
  }

  hold(call: Call): void {
    this.#held.push(call)
  }

  /**
   * Gives the next result if it was given in the midst of other work. False: nothing to do before the program is idle.
   */
  step(): boolean {
    const next = this.#records.next()
    if (!next || next.idle || !this.#records.isReady(next)) return false
    this.#give(next)
    return true
  }

  /** Nothing of the program is in flight. `mayLeave`: it may do something else than before, and nobody is told. */
  idle(mayLeave: boolean): ReplayTurn {
    const next = this.#records.next()
    if (next && this.#records.isReady(next)) {
      this.#give(next)
      return 'again'
    }
    const [first] = this.#held
    if (first && !this.#records.hasUnissued()) return 'live'
    if (first && this.#bindNearest()) return 'again'
    if (!first && !next && !this.#records.hasUnissued()) return 'park'
    if (mayLeave) return 'left'
    if (first) this.block(callText(first), first.site)
    else this.block('no further call: the program waits for something else')
    return 'blocked'
  }

  /**
   * A step that is executed again has failed. True: the last process had got further, and called things inside of it.
   * Nobody is told of that failure, as the step may have done its work before.
   */
  hasFailed(step: Call, result: string): boolean {
    const record = this.#records.unissuedInside(step)
    if (!record) return false
    const { message } = JSON.parse(result) as { message: string }
    const received = `${callText(step)} failed: ${message}`
    this.#hooks.block({ expected: describe(record), received, at: step.site, mayPass: true })
    return true
  }

  /** The program did what it could not have done here: `received`, in words. */
  block(received: string, at = ''): void {
    this.#hooks.block({ expected: this.#expected(), received, at })
  }

  /** One at a time: what is bound may lead to the very call that the others are not. */
  #bindNearest(): boolean {
    const found = this.#records.nearest(this.#held)
    if (!found) return false
    this.#held = this.#held.filter((call) => call !== found.call)
    if (!found.record.drifted) this.#hooks.drifted(found.record.n, found.call.args)
    this.#issue(found.record, found.call)
    return true
  }

  #issue(record: JournalRecord, call: Call): void {
    this.#records.issue(record)
    this.#hooks.bind(record, call)
  }

  #give(record: JournalRecord): void {
    this.#records.given()
    this.#hooks.give(completionOf(record))
  }

  #expected(): string {
    for (const record of this.#records.unissued()) return describe(record)
    const next = this.#records.next()
    if (next) return `the result of ${describe(next)}`
    const open = this.#journal.find(({ state, kind }) => state === 'open' && kind !== 'step')
    return `a program that waits for ${open ? describe(open) : 'something'}`
  }
}

/** Results that are there, and that the last process has not been given, in the order in which they came. */
export function undelivered(journal: readonly JournalRecord[]): Completion[] {
  return journal
    .filter(({ state, delivered }) => state !== 'open' && delivered === null)
    .sort((a, b) => (a.completed ?? Infinity) - (b.completed ?? Infinity) || a.n - b.n)
    .map(completionOf)
}

function completionOf({ n, state, result }: JournalRecord): Completion {
  return { n, state: state === 'failed' ? 'failed' : 'done', result: result ?? 'null' }
}
