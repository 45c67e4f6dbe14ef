import { CHANNELS, type Channel } from '@windlass/shared/model/event.ts'
import type { StoredEvent } from './store.ts'

/** Frames of a stream. */
export interface PageText {
  text: string
  bytes: number
}

/** A page of a log in memory, for all who read it live: each event is printed once. */
export class LogPage {
  readonly events: readonly StoredEvent[]
  readonly #print: (event: StoredEvent) => string
  readonly #frames: string[] = []
  /** Most readers of a page ask for the same of it. */
  #last: { since: number; channels: string; printed: PageText } | undefined

  constructor(events: readonly StoredEvent[], print = runFrame) {
    this.events = events
    this.#print = print
  }

  after(since: number): readonly StoredEvent[] {
    return this.events.filter(({ cursor }) => cursor > since)
  }

  /** The events behind a cursor, as frames of a stream. */
  text(since: number, wanted: readonly Channel[]): PageText {
    const channels = wanted.join()
    if (this.#last?.since === since && this.#last.channels === channels) return this.#last.printed
    const isOurs = isWanted(wanted)
    let text = ''
    for (const [i, event] of this.events.entries())
      if (event.cursor > since && isOurs(event)) text += this.#frames[i] ??= this.#print(event)
    const printed = { text, bytes: Buffer.byteLength(text) }
    this.#last = { since, channels, printed }
    return printed
  }
}

function runFrame(event: StoredEvent): string {
  return sseFrame(event.type, eventJson(event), event.cursor)
}

/** The `id:` line comes last: some clients move their cursor as soon as they have read it. */
export function sseFrame(type: string, json: string, id: string | number): string {
  return `event: ${type}\ndata: ${json}\nid: ${id}\n\n`
}

/** One event as the API shows it. Its data is JSON text already. */
export function eventJson(event: StoredEvent): string {
  const { cursor, at, channel, dataText } = event
  const type = JSON.stringify(event.type)
  return `{"cursor":${cursor},"at":${at},"channel":"${channel}","type":${type},"data":${dataText}}`
}

export function isWanted(channels: readonly Channel[]): (event: StoredEvent) => boolean {
  return channels.length === CHANNELS.length ? () => true : (event) => channels.includes(event.channel)
}
