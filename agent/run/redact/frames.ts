import { hasMoreMarks, type Marks } from '@windlass/shared/json-nesting.ts'
import type { JournalError, JournalOp } from '@windlass/shared/wire/journal.ts'
import type { FrameName, LogLevel } from '@windlass/shared/wire/program.ts'
import type { Frame } from '../program/frames.ts'
import type { Redactor } from './redactor.ts'

// The runtime cuts what it tells of a call: the name is the beginning of a question.
const NAME_CHARACTERS = 200
const ARGS_CHARACTERS = 500
const SCHEMA_CHARACTERS = 16 * 1024
/** Of the error of a step, which has four names at most. */
const MARKS_OF_ERROR: Marks = { opened: 10, names: 20, commas: 20 }

/** What a program says about itself, without secrets. What it prints is bytes that go on from frame to frame: see `lines.ts`. */
export function hideInFrame(redactor: Redactor, frame: Frame): Frame {
  if (frame.name === 'out' || frame.name === 'err' || frame.payload.length === 0) return frame
  const text = frame.payload.toString()
  const hidden =
    frame.name === 'journal' ? hideInJournal(redactor, text) : hideInFields(redactor, text, FIELDS[frame.name])
  return hidden === text ? frame : { ...frame, payload: Buffer.from(hidden) }
}

/** Somebody's secret may be a word of ours, such as `text` or `info`. What a frame is made of stays nevertheless. */
const FIELDS: Partial<Record<FrameName, readonly string[]>> = {
  phase: ['name', 'data'],
  log: ['text', 'level', 'fields', 'more'],
  threw: ['name', 'message', 'stack', 'code', 'detail'],
  blocked: ['expected', 'received', 'at', 'mayPass'],
}
/** Of the error that a step has failed with: the program gets it back. */
const ERROR_FIELDS: readonly (keyof JournalError)[] = ['name', 'message', 'code', 'stack']
const LEVELS: readonly unknown[] = ['info', 'warn', 'error'] satisfies LogLevel[]

function hideInFields(redactor: Redactor, text: string, own: readonly string[] | undefined): string {
  const hidden = redactor.json(text)
  const said = hidden === text || !own ? undefined : parsed(text)
  if (!own || typeof said !== 'object' || said === null) return hidden
  const fields = Object.entries(said).map(([key, value]): [string, unknown] => {
    if (!own.includes(key)) return [redactor.text(key), hideInValue(redactor, value)]
    return [key, key === 'level' && LEVELS.includes(value) ? value : hideInValue(redactor, value)]
  })
  return JSON.stringify(Object.fromEntries(fields))
}

function hideInValue(redactor: Redactor, value: unknown): unknown {
  return JSON.parse(redactor.json(JSON.stringify(value)))
}

/**
 * What people read of a question or a call, and why a step has failed. Results, inputs of children and names of steps pass as they
 * are: the program gets them back, or is recognized by them.
 */
function hideInJournal(redactor: Redactor, text: string): string {
  const op = parsed(text) as JournalOp | null | undefined
  if (op === undefined) return redactor.text(text)
  try {
    const hidden = op && hideInOp(redactor, op)
    return hidden === op || JSON.stringify(hidden) === JSON.stringify(op) ? text : JSON.stringify(hidden)
  } catch {
    // No runtime writes a word of such a shape. The coordinator will say so, and is shown no secret with it.
    return redactor.json(text)
  }
}

function hideInOp(redactor: Redactor, op: JournalOp): JournalOp {
  if (op.op === 'open') return hideInOpen(redactor, op)
  if (op.op === 'drift') return { ...op, args: hideArgs(redactor, op.args) }
  if (op.op !== 'close' || op.state !== 'failed') return op
  if (hasMoreMarks(op.result, MARKS_OF_ERROR)) throw new TypeError('an error of too many values')
  return { ...op, result: hideInFields(redactor, op.result, ERROR_FIELDS) }
}

/** Undefined where it is no JSON: whoever reads it next says so. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function hideInOpen(redactor: Redactor, op: Extract<JournalOp, { op: 'open' }>): JournalOp {
  const { entry, ask } = op
  const args = hideArgs(redactor, entry.args)
  if (ask.for === 'child')
    return { ...op, entry: { ...entry, args }, ask: { ...ask, tags: ask.tags.map((tag) => redactor.text(tag)) } }
  if (ask.for !== 'input') return { ...op, entry: { ...entry, args } }
  if (ask.schemaText !== null && ask.schemaText.length > SCHEMA_CHARACTERS) throw new TypeError('too long a schema')
  const name = redactor.text(entry.name, entry.name.length >= NAME_CHARACTERS)
  const schemaText = ask.schemaText === null ? null : redactor.json(ask.schemaText)
  return { ...op, entry: { ...entry, name, args }, ask: { ...ask, prompt: redactor.text(ask.prompt), schemaText } }
}

const hideArgs = (redactor: Redactor, args: string) => redactor.text(args, args.length >= ARGS_CHARACTERS)
