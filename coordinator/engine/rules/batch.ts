import type { OrgId, RunnerId } from '@windlass/shared/ids.ts'
import type { RunError } from '@windlass/shared/model/run.ts'
import type { Entry, EntryBatch } from '@windlass/shared/wire/agent.ts'
import type { JournalCommand } from './journal-command.ts'

/** What an agent reports of one run. */
export interface AgentBatch extends EntryBatch {
  runnerId: RunnerId
  /** Org of the runner, and so of its runs. */
  orgId: OrgId
}

/** A batch with everything that is found out before anything is locked. */
export interface ReadBatch extends AgentBatch {
  /** What the program says about its journal. */
  commands: JournalCommands
  /** What the program returned. */
  outputs: Outputs
  /** Why this batch cannot be read; it fails alone, as if it could not be written. */
  failure?: unknown
  /** Others hold the run, or nobody does: nothing of the batch was judged. */
  isUnheld?: boolean
}

export type JournalCommands = ReadonlyMap<Entry, JournalCommand>
type Outputs = ReadonlyMap<Entry, Output>

/**
 * The output on one line when it fits its schema; else what the run fails with, and the line where it can be read: what
 * was returned has cost something.
 */
export type Output = { line: string; error?: undefined } | { line?: string; error: RunError }

/**
 * Result: committed up to `seq`; or less is stored than the agent assumes; or the placement is no longer this one.
 * `isRepeated`: some of it had been committed before, so that what was told of it then may be lost.
 */
export type Applied =
  | { kind: 'ack'; seq: number; isRepeated?: boolean }
  | { kind: 'resume'; seq: number }
  | { kind: 'stale' }

/** Number of characters that count like one more entry: a transaction carries some 16 MiB at most. */
const CHARS_PER_ENTRY = 4096

/** A child is a run, an event and a row of the queue besides its entry: as much work as so many lines of a log. */
const ENTRIES_PER_CHILD = 20
/** What a program was given is one number a row, but a command may name a thousand. */
const DELIVERIES_PER_ENTRY = 2

/** What one transaction carries: some 50 ms. */
export const MOST_WEIGHT = 4000

/** What a batch counts for where many share a transaction. */
export function weightOf({ entries, commands }: Pick<ReadBatch, 'entries' | 'commands'>): number {
  return entries.reduce((sum, entry) => sum + weightOfEntry(entry, commands), 0)
}

function weightOfEntry(entry: Entry, commands: JournalCommands): number {
  return 1 + weightOfCommand(commands.get(entry)) + charsOf(entry) / CHARS_PER_ENTRY
}

function weightOfCommand(command: JournalCommand | undefined): number {
  if (command?.child) return ENTRIES_PER_CHILD
  return command?.op.op === 'deliver' ? command.op.list.length / DELIVERIES_PER_ENTRY : 0
}

/** The same in the order in which it came, in parts that fit a transaction each. */
export function partsOf(batch: ReadBatch): ReadBatch[] {
  const parts: Entry[][] = []
  let weight = Infinity
  for (const entry of batch.entries) {
    const own = weightOfEntry(entry, batch.commands)
    weight += own
    if (weight > MOST_WEIGHT) {
      parts.push([])
      weight = own
    }
    parts.at(-1)!.push(entry)
  }
  let { first } = batch
  return parts.map((entries) => {
    const part = { ...batch, entries, first }
    first += entries.length
    return part
  })
}

/** A batch that others must not wait for several times over: its run has one of them in the queue at most. */
export function isHeavy({ commands }: Pick<ReadBatch, 'commands'>, parts: readonly ReadBatch[]): boolean {
  return parts.length > 1 || [...commands.values()].some(({ child }) => child !== undefined)
}

function charsOf(entry: Entry): number {
  if (entry[0] === 'e') return entry[3].length
  if (entry[0] === 'j') return entry[2].length
  return entry[0] === 'end' && entry[2].how === 'returned' ? entry[2].outputText.length : 0
}
