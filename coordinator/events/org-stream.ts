import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { OrgLogs } from './org-log.ts'
import { sseFrame } from './page.ts'
import { pour, type PourDeps, type SseSink } from './pour.ts'

/**
 * What happens to the runs of an org, from a position on or from now on, and then live: what is to be done with the
 * sink. The log is kept for a day after its last reader. Its first frame is `ready`, or `reset` where events behind the
 * position are gone; with either the reader is where the log goes on, and misses nothing from there. Throws a `Fault`
 * for a position that is none.
 */
export async function orgStream(
  deps: PourDeps & { orgLogs: OrgLogs },
  orgId: OrgId,
  since: string | undefined,
): Promise<(sink: SseSink) => Promise<void>> {
  const asked = since === undefined ? undefined : readPosition(since)
  const { series, position: end, goneTo } = await deps.orgLogs.open(orgId)
  // A position behind the end is of a database that has been set back since.
  const isThere = asked?.series === series && asked.position >= goneTo && asked.position <= end
  const from = isThere ? asked.position : end
  const position = `${series}.${from}`
  const isReset = asked !== undefined && !isThere
  const first = isReset
    ? sseFrame('reset', JSON.stringify({ position, message: RESET }), position)
    : sseFrame('ready', JSON.stringify({ position }), position)
  const pouring = { orgId, log: deps.orgLogs.live(orgId, series), since: from, channels: CHANNELS, first }
  return (sink) => pour(deps, pouring, sink)
}

const CHANNELS = ['lifecycle'] as const

const RESET = [
  'Events after the position that was asked for are gone: they are kept for a day.',
  'List the runs to see where they stand; the stream goes on from here.',
].join(' ')

interface Position {
  series: string
  position: number
}

function readPosition(text: string): Position {
  const [, series, position] = /^([0-9a-f]{12})\.([0-9]{1,15})$/.exec(text) ?? []
  if (series !== undefined && position !== undefined) return { series, position: Number(position) }
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'since' },
    'since: not a position of this stream; send the `id` of the last event, or leave it out to begin now.',
  )
}
