import { z } from 'zod'
import { RunId } from '../ids.ts'

export const CHANNELS = ['lifecycle', 'phase', 'output', 'log', 'agent'] as const
export const Channel = z.enum(CHANNELS)
export type Channel = z.output<typeof Channel>

/** What a reader gets who does not ask for channels. */
export const DEFAULT_CHANNELS: readonly Channel[] = ['lifecycle', 'phase', 'output']

export const RunEvent = z
  .object({
    cursor: z.int().meta({ description: 'Counts 1, 2, 3 … within the run, without gaps.' }),
    at: z.int().meta({ description: 'When it happened where it happened, in milliseconds since the Unix epoch.' }),
    channel: Channel,
    type: z.string().meta({ examples: ['run.running', 'phase', 'log.stdout', 'output'] }),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'RunEvent' })
export type RunEvent = z.output<typeof RunEvent>

/** What happened to a run, as the stream of its org tells it. */
export const OrgEvent = z
  .object({
    position: z.string().meta({
      description: 'Where it stands in the stream: `since` of whoever reads on behind it.',
    }),
    at: z.int().meta({ description: 'When it happened, in milliseconds since the Unix epoch.' }),
    type: z.string().meta({ description: 'As in the log of the run.', examples: ['run.queued', 'run.completed'] }),
    run: RunId,
    workflow: z.string().nullable().meta({ description: 'Slug; null when the run or its workflow is gone.' }),
    cursor: z.int().meta({ description: 'Where it stands in the log of the run.' }),
    data: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'OrgEvent' })
export type OrgEvent = z.output<typeof OrgEvent>

/** The events that a program may send through its agent. All others are written by the coordinator itself. */
const PROGRAM_EVENTS: Record<string, Channel> = {
  phase: 'phase',
  'log.stdout': 'log',
  'log.stderr': 'log',
  // What the agent could not keep: `{ text, events, bytes }`.
  'log.gap': 'log',
}

export function channelOfProgramEvent(type: string): Channel | undefined {
  return Object.hasOwn(PROGRAM_EVENTS, type) ? PROGRAM_EVENTS[type] : undefined
}

/** What a program may put into an event, as JSON, unless its coordinator is set to another limit: 64 KiB. */
export const EVENT_DATA_BYTES = 64 * 1024
/** The highest limit that can be set. */
export const MOST_EVENT_DATA_BYTES = 256 * 1024
/** For what stands around it, such as the name of a phase. Only with this are the data of an event too large. */
export const AROUND_EVENT_BYTES = 2 * 1024

/** A page of the log ends once its data has so many bytes, however many events were asked for. */
export const EVENT_PAGE_BYTES = 4 * 1024 * 1024
/** A page that was ended by its bytes has this many events at least; one with fewer has all that there was. */
export const EVENT_PAGE_LEAST = Math.floor(EVENT_PAGE_BYTES / (MOST_EVENT_DATA_BYTES + AROUND_EVENT_BYTES))
