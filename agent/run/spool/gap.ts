import type { Entry } from '@windlass/shared/wire/agent.ts'

/** Log lines of a placement that could not be kept, since the last entry that was. */
export interface Gap {
  events: number
  /** Of their data. */
  bytes: number
}

export function isLog(entry: Entry): boolean {
  return entry[0] === 'e' && entry[2].startsWith('log.')
}

export function widened(gap: Gap | undefined, entry: Entry): Gap {
  const bytes = entry[0] === 'e' ? Buffer.byteLength(entry[3]) : 0
  return { events: (gap?.events ?? 0) + 1, bytes: (gap?.bytes ?? 0) + bytes }
}

/** Stands where they would have stood. */
export function gapEntry({ events, bytes }: Gap): Entry {
  const text = `${events} log ${events === 1 ? 'line' : 'lines'} (${bytes} bytes) are left out here: the agent had no room to keep them.`
  return ['e', Date.now(), 'log.gap', JSON.stringify({ text, events, bytes })]
}
