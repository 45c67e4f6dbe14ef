import type { Completion, EntryIdentity, EntryKind, JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { WaitCall } from '../waits.ts'
import { clip } from '../clip.ts'
import { decodeResult, reviveError } from './codec.ts'
import type { CallKey } from './identity.ts'

/** A step whose function is being executed. What is called inside of it has it as its parent. */
export interface Scope {
  path: string
  /** The journal has it already: an entry is written of a step at its end, unless something is called inside of it. */
  isOpen: boolean
  call: Call
  /** Steps and calls of other workflows that were called inside of it, and have not come to anything yet. */
  unsettled: Set<Call>
  /** Its function has returned: what it has come to is not asked for again. */
  hasReturned: boolean
}

/** One call of the program, in this process. */
export interface Call extends CallKey {
  /** Number and place of its entry; 0 until it has one. */
  n: number
  position: number
  /** The arguments as text, cut. */
  args: string
  site: string
  within: Scope | undefined
  work: { wait: WaitCall } | { act: () => unknown }
  promise: Promise<unknown>
  resolve(value: unknown): void
  reject(error: Error): void
}

export function identityOf({ n, position, parent, kind, name, hash, occurrence, args, site }: Call): EntryIdentity {
  return { n, position, parent, kind, name, hash, occurrence, args, site }
}

/** Gives the program its result. Answers the error, where it has failed. */
export function settle(call: Call, { state, result }: Pick<Completion, 'state' | 'result'>): Error | undefined {
  call.within?.unsettled.delete(call)
  if (state === 'done') {
    call.resolve(valueOf(call.kind, result))
    return undefined
  }
  const error = failureOf(call, result)
  call.reject(error)
  return error
}

function valueOf(kind: EntryKind, result: string): unknown {
  if (kind === 'sleep') return undefined
  return kind === 'step' ? decodeResult(result) : (JSON.parse(result) as unknown)
}

function failureOf(call: Call, result: string): Error {
  const error = JSON.parse(result) as Parameters<typeof reviveError>[0]
  return 'wait' in call.work ? calledAt(call, call.work.wait.toError(error)) : reviveError(error)
}

const CALLED = { sleep: 'sleep()', input: 'requestInput()', child: 'workflows.call()' } as const

/** It was made in a turn in which nothing of the program is on the stack: the line that asked says more. */
function calledAt({ kind, site }: Call, error: Error): Error {
  if (kind !== 'step' && site !== '') error.stack = `${error.name}: ${error.message}\n    at ${CALLED[kind]} (${site})`
  return error
}

const TEXT_CHARACTERS = 200

/** As people read it where a replay has met something else than was recorded. */
export function describe(call: Pick<JournalRecord, 'kind' | 'name' | 'args' | 'site'>): string {
  const at = call.site === '' ? '' : ` at ${call.site}`
  return `${callText(call)}${at}`
}

export function callText({ kind, name, args }: Pick<JournalRecord, 'kind' | 'name' | 'args'>): string {
  const cut = clip(args, TEXT_CHARACTERS)
  if (kind === 'sleep') return `sleep(${cut})`
  if (kind === 'step') return `step(${JSON.stringify(name)})`
  if (kind === 'input') return `requestInput(${cut})`
  return `workflows.call(${JSON.stringify(name)}, ${cut})`
}
