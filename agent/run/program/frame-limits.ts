import { hasMoreMarks, type Marks } from '@windlass/shared/json-nesting.ts'
import { AROUND_EVENT_BYTES, MOST_EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import { JOURNAL_CHARS, JOURNAL_MARKS } from '@windlass/shared/wire/agent.ts'
import type { FrameName, LogData } from '@windlass/shared/wire/program.ts'
import { BrokenFrame, type Frame, type MostBytes } from './frames.ts'

const KIB = 1024
const MIB = 1024 * KIB
const NOTHING = 0
/** Of line breaks alone these are 16,384 events, which take some 20 ms. */
const PRINTED = 16 * KIB
const EVENT = MOST_EVENT_DATA_BYTES + AROUND_EVENT_BYTES

/** Of a process without a run: it may say that it has booted. */
export const WITHOUT_RUN: MostBytes = { ready: NOTHING }

/**
 * The first word of a program that is taken back, and no other: variables and secrets of two levels, 1 MiB in all, with
 * what JSON makes of their characters.
 */
export const OF_TAKEOVER: MostBytes = { rejoin: 8 * MIB }

/**
 * Bytes of each kind of frame of a program that is executed: what the runtime sends at most. A program can write in its
 * place, and what the agent parses or looks through stops all other runs meanwhile. Only an output is never parsed.
 */
export const OF_RUN: MostBytes = {
  ready: NOTHING,
  begun: NOTHING,
  children: NOTHING,
  live: NOTHING,
  // What is printed comes in pieces of that size (sdk/runtime/host/console-routing.ts), and a long message of `log` in
  // pieces that fit into an event.
  out: PRINTED,
  err: PRINTED,
  phase: EVENT,
  log: EVENT,
  // 30,400 characters, of which JSON makes up to six bytes each, and a detail of 64 KiB.
  threw: 256 * KIB,
  // Or the largest output that its run may have.
  returned: 16 * MIB,
  idle: 64 * KIB,
  journal: JOURNAL_CHARS,
  park: KIB,
  // The message of a step that has failed: 10,000 characters, and less than that around it.
  blocked: 128 * KIB,
}

/** No 66 KiB of JSON have more, which is what most events may have; to parse it takes some 20 ms. */
const MARKS_OF_EVENT: Marks = { opened: 23_000, names: 14_000, commas: 34_000 }
const MOST_MARKS: Partial<Record<FrameName, Marks>> = {
  phase: MARKS_OF_EVENT,
  log: MARKS_OF_EVENT,
  threw: MARKS_OF_EVENT,
  journal: JOURNAL_MARKS,
  // One name for each variable, of which there are 400 at most, and some of ours.
  rejoin: { opened: 10, names: 2_000, commas: 2_000 },
}

const TOO_MANY: LogData = { text: 'Left out: the data of this event holds too many values.' }

/** The same frame when it is parsed in little time. Of an event that is not, a note stands in its place. */
export function parseable(frame: Frame): Frame {
  const most = MOST_MARKS[frame.name]
  if (!most || !hasMoreMarks(frame.payload.toString(), most)) return frame
  if (frame.name === 'phase' || frame.name === 'log')
    return { ...frame, payload: Buffer.from(JSON.stringify(TOO_MANY)) }
  throw new BrokenFrame(`a ${frame.name} of too many values`)
}
