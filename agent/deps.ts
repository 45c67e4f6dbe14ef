import type { Log } from '@windlass/shared/log.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Bell } from './bell.ts'
import type { AgentConfig } from './config.ts'
import type { Link } from './link/link.ts'
import type { Rest } from './link/rest.ts'
import type { Beats } from './loops/heartbeat.ts'
import type { Bundles } from './run/bundles.ts'
import type { LeftLines } from './run/left-lines.ts'
import type { Lives } from './run/lives.ts'
import type { Parking } from './run/parking.ts'
import type { Processes } from './run/processes.ts'
import type { Secrets } from './run/secrets.ts'
import type { Slots } from './run/slots.ts'
import type { Spool } from './run/spool.ts'

/** Everything long-lived of an agent, built once. */
export interface Deps {
  config: AgentConfig
  log: Log
  rest: Rest
  link: Link
  spool: Spool
  bundles: Bundles
  secrets: Secrets
  processes: Processes
  lives: Lives
  slots: Slots
  parking: Parking
  leftLines: LeftLines
  beats: Beats
  /** Rings when a slot or the connection may have become free. */
  claimBell: Bell
  /** How the fleet is to behave, as the coordinator said last. */
  settings: { current: AgentSettings }
}
