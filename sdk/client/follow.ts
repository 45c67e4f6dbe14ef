import type { Channel, RunEvent } from '@windlass/shared/model/event.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { openRoute } from '@windlass/shared/ops/call.ts'
import type { Base } from '@windlass/shared/ops/base.ts'
import { acrossConnections, dataOf } from './across-connections.ts'
import type { ReconnectOptions, Source } from './across-connections.ts'
import type { SseFrame } from './sse.ts'
import { table } from './table.ts'

export interface FollowOptions extends ReconnectOptions {
  /** The cursor of the last event that was read: only those behind it; 0, the default, is the whole log. */
  since?: number
  /** Which channels; `lifecycle`, `phase` and `output` when left out. */
  channels?: Channel[]
  /**
   * Told when the last event that was read is not in the log any more, as after a restore of the database. The events
   * that come then are those of the log as it is now, from the first one on. What it throws ends the iteration.
   */
  onReset?: (message: string) => void
}

/**
 * The events of a run as they happen, each exactly once and in order. Ends when the run has ended and its log is read;
 * a broken connection is made again from the last cursor.
 * After a restore of the database the log may be told once more, from its first event on: see `onReset`.
 */
export function follow(base: Base, run: string, options: FollowOptions = {}): AsyncGenerator<RunEvent, void> {
  return acrossConnections(sourceOf(base, run, options), options)
}

function sourceOf(base: Base, run: string, { since = 0, channels, onReset }: FollowOptions): Source<RunEvent> {
  let cursor = since
  /** With its time an event is told from another one that has its cursor since a restore. */
  let last: string | undefined
  let isDone = false
  return {
    where: () => `${base.url} while following ${run} at cursor ${cursor}`,
    isDone: () => isDone,
    open({ signal, deadlineMs }) {
      const args = { run, since: cursor, ...(channels && { channels }) }
      const headers = { accept: 'text/event-stream', ...(last !== undefined && { 'last-event-id': last }) }
      return openRoute(base, table.runs.stream, args, { signal, deadlineMs, headers })
    },
    take(frame, url) {
      isDone = frame.event === 'done'
      if (isDone) return undefined
      if (frame.event === 'reset') {
        cursor = 0
        last = undefined
        const { message } = dataOf(frame, url) as { message: string }
        onReset?.(message)
        return undefined
      }
      const event = eventOf(frame, url)
      if (event.cursor <= cursor) return undefined
      cursor = event.cursor
      last = `${cursor}.${event.at}`
      return event
    },
  }
}

function eventOf(frame: SseFrame, url: string): RunEvent {
  const event = dataOf(frame, url) as RunEvent
  if (Number.isSafeInteger(event?.cursor)) return event
  throw new ApiError(`${url} sent an event without a cursor`, { status: 200, code: 'BAD_ANSWER' })
}
