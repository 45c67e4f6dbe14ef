import type { Log } from '@windlass/shared/log.ts'
import { AROUND_EVENT_BYTES } from '@windlass/shared/model/event.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { AgentRun } from './agent-run.ts'
import type { Parking } from './parking.ts'
import type { OnEvents, ProgramEvent } from './program/output.ts'
import type { Slots } from './slots.ts'
import type { Spool } from './spool/spool.ts'
import { UNSAID_EVENT_DATA_BYTES } from './program/start-message.ts'

interface ReportNeeds {
  spool: Spool
  parking: Parking
  slots: Slots
  log: Log
}

/** What a program tells goes into the spool; what it says about its waiting is acted upon here. */
export function reportTo({ spool, parking, slots, log }: ReportNeeds, agentRun: AgentRun): OnEvents {
  const { run, epoch } = agentRun.offer

  function actOn(entries: readonly Entry[], last: number): void {
    agentRun.reported(entries, last)
    // Of several only the last one counts: one that parked and went on at once has had its slot all the time.
    const at = entries.findLastIndex(([kind]) => kind === 'park' || kind === 'resume')
    if (at < 0) return
    const wasParked = agentRun.isParked
    agentRun.isParked = entries[at]![0] === 'park'
    if (agentRun.isParked) agentRun.parkings += 1
    if (agentRun.isParked) parking.parked(agentRun, last - entries.length + 1 + at)
    else parking.left(agentRun)
    if (agentRun.isParked && !wasParked) slots.freed()
  }

  return (events) => {
    const entries = events.map((event) => toEntry(log, agentRun.offer, event))
    const taking = spool.append(run, epoch, entries)
    const held = spool.find(run, epoch)
    if (held) actOn(entries, held.written + held.gathered.length)
    return taking
  }
}

function toEntry(log: Log, offer: Offer, event: ProgramEvent): Entry {
  if (event.channel === 'journal') return ['j', event.at, event.data]
  if (event.channel === 'park') return ['park', event.at, event.data.waitsFor, event.data.computeMs]
  if (event.channel === 'resume') return event.data ? ['resume', event.at, event.data] : ['resume', event.at]
  return toEventEntry(log, offer, event)
}

/** Longer data is cut up where it is made; what gets here nevertheless must not stop everything behind it. */
function toEventEntry(log: Log, offer: Offer, event: Pick<ProgramEvent, 'at' | 'type' | 'data'>): Entry {
  const text = JSON.stringify(event.data) ?? 'null'
  const most = (offer.eventDataBytes ?? UNSAID_EVENT_DATA_BYTES) + AROUND_EVENT_BYTES
  const bytes = text.length * 3 > most ? Buffer.byteLength(text) : text.length
  if (bytes <= most) return ['e', event.at, event.type, text]
  log.warn('run.event.too-large', { run: offer.run, type: event.type, bytes })
  const note = `Left out: the data of this event has ${bytes} bytes, and ${most} are allowed.`
  return ['e', event.at, event.type, JSON.stringify({ text: note, bytes })]
}
