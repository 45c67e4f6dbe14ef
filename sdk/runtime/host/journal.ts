import path from 'node:path'
import type { LogData, ParkReport } from '@windlass/shared/wire/program.ts'
import type * as EngineBundle from '../engine/main.ts'
import type { Engine, Port } from '../engine/port.ts'
import { sendFrame, sendTogether } from './frames.ts'
import { holdOn } from './messages.ts'
import type { Session } from './session.ts'
import { unrefOurs } from './unrefed.ts'

const ENGINE_FILE = 'engine.cjs'

// Programs may put fake timers in place of these.
const { setImmediate, setTimeout, clearTimeout } = globalThis

/** Loads what most programs never need: a bundle of its own. */
export function loadEngine(folder: string): typeof EngineBundle {
  return require(path.join(folder, ENGINE_FILE)) as typeof EngineBundle
}

export function openEngine(session: Session, folder: string): Engine {
  const { journal } = session
  const { attempt, entries, forgotten = 0, replay } = session.start
  return loadEngine(folder).createEngine({ attempt, journal, entries, forgotten, replay }, createPort(session))
}

function createPort(session: Session): Port {
  let holds = false
  return {
    send: (op) => sendFrame('journal', JSON.stringify(op)),
    together: sendTogether,
    park: (waitsFor, heard) => sendFrame('park', JSON.stringify({ waitsFor, heard } satisfies ParkReport)),
    live: () => sendFrame('live'),
    blocked: (mismatch) => sendFrame('blocked', JSON.stringify(mismatch)),
    holdOn: (hold) => {
      holds = hold
      holdOn(hold)
    },
    // Our own line counts while it is what keeps the process.
    isQuiet: (timers) => process.getActiveResourcesInfo().length <= timers + (holds ? 1 : 0),
    site: () => session.site(),
    warn: (text) => sendFrame('log', JSON.stringify({ text, level: 'warn' } satisfies LogData)),
    soon: (act) => void setImmediate(act),
    later: (ms, keeps, act) => {
      const timer = setTimeout(act, ms)
      if (!keeps) unrefOurs(timer)
      return () => clearTimeout(timer)
    },
  }
}
