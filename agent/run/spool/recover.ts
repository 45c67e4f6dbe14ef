import type { Log } from '@windlass/shared/log.ts'
import { addBehind, addWritten, keyOf, newHeld } from './held.ts'
import type { Held } from './held.ts'
import type { NeededFiles } from './needed-files.ts'
import type { ReadLine, Segments } from './segments.ts'
import { unreadableAtStart } from './unread.ts'

interface Recovering {
  known: Map<string, Held>
  needed: Pick<NeededFiles, 'need'>
  /** See `thisStore`. */
  store: string
}

/** Reads what an earlier process left, into `known` and into the count of placements that need each file. */
export async function recoverSpool(segments: Segments, { known, needed, store }: Recovering, log: Log): Promise<void> {
  const end = segments.end()
  let at = segments.oldest()
  while (at.segment < end.segment || at.offset < end.offset) {
    const { lines, next, damagedBytes, unread } = await segments.read(at)
    if (unread) throw unreadableAtStart(unread)
    for (const line of lines) replay(line, at.segment, { known, store })
    // The last line of a process that was killed; nothing of it was ever sent.
    if (damagedBytes > 0) log.warn('spool.torn', { segment: at.segment, bytes: damagedBytes })
    // One of the damaged lines may have said that they begin.
    if (damagedBytes > 0) for (const held of known.values()) held.isUnbegun = false
    at = next
  }
  for (const held of known.values()) {
    // Files are removed in order, and only when all in them is acknowledged: what stands in none of them was.
    if (held.parts.length === 0) held.acked = held.written
    held.sent = held.acked
    held.everSent = held.written
    for (const { segment } of held.parts) needed.need(segment)
  }
}

function replay(line: ReadLine, segment: number, { known, store }: Pick<Recovering, 'known' | 'store'>): void {
  const key = keyOf(line.run, line.epoch)
  if (line.kind === 'forget') {
    known.delete(key)
    return
  }
  const held = known.get(key) ?? newHeld(line.run, line.epoch, { segment, offset: line.offset })
  known.set(key, held)
  if (line.kind === 'mark') {
    held.mark = line.mark
    held.backlog += addBehind(held, line.length)
    return
  }
  if (line.kind === 'gap') {
    held.gap = { events: line.events, bytes: line.bytes }
    return
  }
  held.isEnded ||= line.isEnded
  // Nothing is said of a program before it may begin, but that it is over.
  held.isUnbegun = line.kind === 'open' && line.unbegunIn !== '' && line.unbegunIn === store
  if (line.kind === 'open') {
    held.written = Math.max(held.written, line.next - 1)
    return
  }
  // Left from a write that failed, after which the disk would not cut the file: it was written again.
  if (line.last <= held.written) return
  // Whatever was left out before it, it tells of that itself.
  held.gap = undefined
  if (held.parts.length === 0) held.acked = line.first - 1
  held.backlog += line.length
  addWritten(held, line.last, line.length, segment)
}
