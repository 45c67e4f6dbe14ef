import { AROUND_EVENT_BYTES, channelOfProgramEvent } from '@windlass/shared/model/event.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import type { Config } from '../../config.ts'
import { jsonLine } from './json-line.ts'
import { emit } from './transitions.ts'
import type { Moving } from './run.ts'

type Limit = Pick<Config, 'maxEventDataBytes'>
type EventEntry = Extract<Entry, readonly ['e', ...unknown[]]>
type Logged = Pick<Moving, 'id' | 'orgId' | 'cursor' | 'events'>

/** An agent splits what is too long and knows the types; one that does not is shown by what it sent, not by a gap. */
export function takeEvent(run: Logged, [, at, type, dataText]: EventEntry, { maxEventDataBytes }: Limit): void {
  const channel = channelOfProgramEvent(type)
  if (!channel) return complain(run, at, `an event of the unknown type ${type}`)
  // A character has three bytes at most: short texts need no counting.
  const limitBytes = maxEventDataBytes + AROUND_EVENT_BYTES
  const bytes = dataText.length * 3 > limitBytes ? Buffer.byteLength(dataText) : 0
  if (bytes > limitBytes)
    return emit(run, { at, channel, type, dataText: JSON.stringify({ truncated: true, bytes, limitBytes }) })
  const line = dataText.startsWith('{') ? jsonLine(dataText) : undefined
  if (line === undefined) return complain(run, at, `a ${type} whose data is no JSON object, or nests too deep`)
  emit(run, { at, channel, type, dataText: line })
}

function complain(run: Logged, at: number, what: string): void {
  emit(run, {
    at,
    channel: 'log',
    type: 'log.stderr',
    dataText: JSON.stringify({ text: `the agent sent ${what.slice(0, 200)}` }),
  })
}
