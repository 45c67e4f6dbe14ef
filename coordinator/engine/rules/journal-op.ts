import { RUN_ERRORS, type RunErrorCode } from '@windlass/shared/errors.ts'
import { newId } from '@windlass/shared/ids.ts'
import type { Ask, EntryIdentity, JournalError, JournalOp } from '@windlass/shared/wire/journal.ts'
import { complete, emit, fail } from './transitions.ts'
import { refuseCommand } from './outcome.ts'
import type { Moving } from './run.ts'
import { charsOf, type Due, MOST_CHARS, type NewEntry } from './journal.ts'
import { MOST_ENTRIES } from './parse-op.ts'
import { refusal, type JournalCommand } from './journal-command.ts'

/** A child of a child of a child … A workflow that calls itself without end must come to one. */
const MOST_DEPTH = 64

type Open = Extract<JournalOp, { op: 'open' }>

/** Takes one command of the program for its journal. What it asks for exists when the transaction is committed. */
export function takeOp(run: Moving, at: number, command: JournalCommand): void {
  const { op } = command
  switch (op.op) {
    case 'open':
      return open(run, at, op, command)
    case 'close':
      add(run, at, op.entry, { state: op.state, result: op.result })
      return
    case 'adopt':
      run.journal.adopted.push({ n: op.n, position: op.position, attempt: run.attempt })
      return
    case 'drift':
      run.journal.drifted.push({ n: op.n, args: op.args })
      return noteDrift(run, at, op)
    case 'deliver':
      for (const delivery of op.list) run.journal.delivered.push({ delivery, attempt: run.attempt })
  }
}

/** False: there is no room for it, and the run has ended for that. */
function add(run: Moving, at: number, entry: EntryIdentity, more: Partial<NewEntry>): boolean {
  run.journalChars += charsOf({ ...entry, result: more.result ?? null })
  if (entry.n - run.forgottenEntries > MOST_ENTRIES) tooMany(run, at)
  else if (run.journalChars > MOST_CHARS) tooLarge(run, at)
  else write(run, entry, more)
  return !run.released
}

function write(run: Moving, entry: EntryIdentity, more: Partial<NewEntry>): void {
  // A step in which something is waited for is opened and closed, perhaps both at once.
  const known = entry.n <= run.entries ? run.journal.entries.find(({ n }) => n === entry.n) : undefined
  if (known?.state === 'open' && known.kind === 'step' && entry.kind === 'step') Object.assign(known, more)
  if (known) return
  run.entries = Math.max(run.entries, entry.n)
  run.journal.entries.push({
    ...entry,
    attempt: run.attempt,
    state: 'open',
    result: null,
    childRunId: null,
    due: null,
    ...more,
  })
}

const ADVICE = 'Let children do parts of the work: workflows.call() has a journal of its own.'

function tooMany(run: Moving, at: number): void {
  const code: RunErrorCode = 'JOURNAL_FULL'
  // Whoever is being stopped ends as that.
  if (run.status === 'cancelling') return
  fail(run, at, { code, message: `${RUN_ERRORS[code]} ${MOST_ENTRIES} entries are allowed. ${ADVICE}` })
}

function tooLarge(run: Moving, at: number): void {
  const code: RunErrorCode = 'JOURNAL_FULL'
  if (run.status === 'cancelling') return
  const advice = 'Return less from step(), or a reference to it.'
  fail(run, at, {
    code,
    message: `${RUN_ERRORS[code]} ${MOST_CHARS} characters of results and questions are allowed. ${advice} ${ADVICE}`,
  })
}

function open(run: Moving, at: number, { entry, ask }: Open, command: JournalCommand): void {
  // Whoever is being stopped starts nothing any more; its runtime refuses the call as well.
  if (run.status === 'cancelling' || run.timedOut) return
  // Calls are told of in their order; a step is when something is called inside of it.
  if (ask.for !== 'step' && entry.n <= run.entries) return refuseCommand(run, at, `entry ${entry.n} was called twice`)
  if (command.spent !== undefined) return refuseCommand(run, at, command.spent)
  const refused = ask.for === 'child' ? whyNoCall(run, command) : command.refused
  if (refused) {
    if (!add(run, at, entry, {})) return
    return complete(run, { n: entry.n, state: 'failed', result: JSON.stringify(refused) })
  }
  switch (ask.for) {
    case 'step':
      add(run, at, entry, {})
      return
    case 'sleep':
      add(run, at, entry, { due: 'until' in ask ? { at: ask.until } : { inMs: ask.ms } })
      return
    case 'input':
      return openQuestion(run, at, entry, ask)
    case 'child':
      return openChild(run, at, entry, command)
  }
}

function whyNoCall(run: Moving, { refused }: JournalCommand): JournalError | undefined {
  return run.depth >= MOST_DEPTH ? tooDeep(run) : refused
}

function openQuestion(run: Moving, at: number, entry: EntryIdentity, ask: Extract<Ask, { for: 'input' }>): void {
  const { prompt, schemaText, onTimeoutText, timeoutMs } = ask
  const due: Due | null = timeoutMs === null ? null : { inMs: timeoutMs }
  run.journalChars += prompt.length + (schemaText?.length ?? 0) + (onTimeoutText?.length ?? 0)
  if (!add(run, at, entry, { due })) return
  run.journal.questions.push({ id: newId('inp'), n: entry.n, prompt, schemaText, onTimeoutText, timeoutMs })
}

function openChild(run: Moving, at: number, entry: EntryIdentity, { child }: JournalCommand): void {
  if (!child) throw new Error(`the call ${entry.n} of run ${run.id} was not prepared`)
  if (!add(run, at, entry, { childRunId: child.run.id })) return
  run.journal.children.push({
    ...child.run,
    environment: child.inherits ? run.environment : child.run.environment,
    rootRunId: run.rootRunId ?? run.id,
    depth: run.depth + 1,
  })
}

function tooDeep(run: Moving): JournalError {
  const message = `Runs may call runs ${MOST_DEPTH} levels deep, and this one is at level ${run.depth}. Does a workflow call itself without end?`
  return refusal(message, { depth: run.depth, limit: MOST_DEPTH })
}

function noteDrift(run: Moving, at: number, { n, args }: { n: number; args: string }): void {
  const text = `Entry ${n} of the journal was continued with other arguments than it was recorded with: ${args.slice(0, 300)}`
  emit(run, { at, channel: 'log', type: 'log.stderr', dataText: JSON.stringify({ text, note: 'input_drift' }) })
}
