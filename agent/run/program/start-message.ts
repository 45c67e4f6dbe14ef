import { AROUND_EVENT_BYTES, EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import type { StartMessage } from '@windlass/shared/wire/program.ts'
import { OF_RUN } from './frame-limits.ts'
import type { MostBytes } from './frames.ts'
import type { ProgramStart, StopOrder, TakenBack } from './program.ts'

const OUTPUT_BYTES = 1024 * 1024
/** What stands around it goes off the 64 KiB that a coordinator takes which names no limit. */
export const UNSAID_EVENT_DATA_BYTES = EVENT_DATA_BYTES - AROUND_EVENT_BYTES

/** What a process is told of the run that it is to execute. */
export function startMessage(
  start: ProgramStart,
  locations: Pick<StartMessage, 'bundleFile' | 'workspace' | 'rejoin'>,
): StartMessage {
  const { runId, attempt, epoch, org, workflow, environment, trigger, inputText, variables, token } = start
  const { entries, forgotten, replay, outputBytes = OUTPUT_BYTES, eventDataBytes = UNSAID_EVENT_DATA_BYTES } = start
  const facts = { runId, attempt, epoch, org, workflow, environment, trigger, inputText, variables, token }
  const stays = start.process === 'reuse'
  return { t: 'start', ...facts, entries, forgotten, replay, ...locations, stays, outputBytes, eventDataBytes }
}

/** An earlier version of the runtime, which another agent has started, knows no other stop than a cancel. */
export function stopMessage<T extends StopOrder>(order: T, taken: Pick<TakenBack, 'handsOver'> | undefined): T {
  return order.why === 'handover' && taken && !taken.handsOver ? { ...order, why: 'cancelled' } : order
}

/** What decides how the program's output is cut into events. */
export function whatOutputNeeds(start: ProgramStart) {
  const { lines, redactor, eventDataBytes = UNSAID_EVENT_DATA_BYTES } = start
  return { lines, redactor, eventDataBytes }
}

/** What its frames may have, and its output with them. */
export function framesOf({ outputBytes = OUTPUT_BYTES }: Pick<ProgramStart, 'outputBytes'>): MostBytes {
  return { ...OF_RUN, returned: outputBytes }
}
