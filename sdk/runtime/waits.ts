import type { Ask, EntryKind, JournalError } from '@windlass/shared/wire/journal.ts'

/** A call whose result comes from elsewhere: a time, a person, another run. */
export interface WaitCall {
  kind: Exclude<EntryKind, 'step'>
  name: string
  /** What tells it from other calls: JSON. */
  args: unknown
  ask: Exclude<Ask, { for: 'step' }>
  /** Makes the error that the program sees. */
  toError(error: JournalError): Error
}

/** What the journal does for the SDK. Its promises are handed to the program as they are. */
export interface Waits {
  wait(call: WaitCall): Promise<unknown>
  step(name: string, act: () => unknown): Promise<unknown>
}
