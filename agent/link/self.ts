import { PROTOCOL_NAME, type AgentFrame, type AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { ThisStart } from '../instance.ts'
import { uptimeMs } from '../os/process-id.ts'
import type { Facts } from '../facts.ts'
import type { Slots } from '../run/slots.ts'
import type { Spool } from '../run/spool/spool.ts'
import { VERSION } from '../version.ts'

type Frame<T extends AgentFrame['t']> = Extract<AgentFrame, { t: T }>

/** What this agent says about itself: all of it when it connects, and then what has changed. */
export interface Self {
  hello(): Frame<'hello'>
  heartbeat(n: number): Frame<'heartbeat'>
}

export interface SelfParts {
  start: Pick<ThisStart, 'instance'>
  facts: Facts
  slots: Pick<Slots, 'total'>
  spool: Pick<Spool, 'holds'>
  /** Undefined until the coordinator has said how to behave: nothing was promised to it yet. */
  settings: () => AgentSettings | undefined
}

export function createSelf({ start, facts, slots, spool, settings }: SelfParts): Self {
  let sent = { facts: 0, slots: 0 }
  let connections = 0
  const now = () => ({ facts: facts.version, slots: slots.total() })
  const fence = () => {
    const fenceMs = settings()?.fenceMs
    return fenceMs === undefined ? {} : { fenceMs }
  }
  const bootAge = () => {
    const age = uptimeMs()
    return age === undefined ? {} : { bootAgeMs: Math.floor(age) }
  }
  return {
    hello() {
      sent = now()
      const about = {
        protocol: PROTOCOL_NAME,
        version: VERSION,
        slots: sent.slots,
        instance: start.instance,
        connection: ++connections,
        facts: facts.current(),
      }
      return { t: 'hello', ...about, holds: spool.holds(), ...fence(), ...bootAge() }
    },
    heartbeat(n) {
      const before = sent
      sent = now()
      return {
        t: 'heartbeat',
        n,
        holds: spool.holds(),
        ...(sent.slots !== before.slots && { slots: sent.slots }),
        ...(sent.facts !== before.facts && { facts: facts.current() }),
        ...fence(),
      }
    },
  }
}
