import type { Log } from '@windlass/shared/log.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Bell } from './bell.ts'
import type { Checks } from './checks/checks.ts'
import type { AgentConfig, InForce } from './config.ts'
import type { Facts } from './facts.ts'
import type { Hooks } from './hooks/hooks.ts'
import type { Intake } from './intake.ts'
import type { ThisStart } from './instance.ts'
import type { Keys } from './keys.ts'
import type { Clock } from './link/clock.ts'
import type { Link } from './link/link.ts'
import type { Rest } from './link/rest.ts'
import type { Self } from './link/self.ts'
import type { Sleeps } from './link/sleeps.ts'
import type { Beats } from './loops/heartbeat.ts'
import type { Bundles } from './run/bundle/bundles.ts'
import type { LeftLines } from './run/program/left-lines.ts'
import type { Lives } from './run/lives.ts'
import type { Parking } from './run/parking.ts'
import type { Processes } from './run/hosts/processes.ts'
import type { Secrets } from './run/secrets.ts'
import type { Slots } from './run/slots.ts'
import type { Spool } from './run/spool/spool.ts'
import type { Records } from './takeover/records.ts'
import type { Takeover } from './takeover/takeover.ts'
import type { Activity } from './status/activity.ts'

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
  /** What the coordinator's clock shows. */
  clock: Clock
  sleeps: Sleeps
  /** By which it signs. */
  keys: Keys
  start: ThisStart
  self: Self
  /** Whether it may ask for work, by the coordinator's word and its own. */
  intake: Intake
  /** What it says about itself. */
  facts: Facts
  checks: Checks
  hooks: Hooks
  activity: Activity
  /** What is kept of programs for the next agent, and who keeps it. */
  records: Records
  takeover: Takeover
  /** Rings when a slot or the connection may have become free. */
  claimBell: Bell
  /** How the fleet is to behave, as the coordinator said last. */
  settings: { current: AgentSettings }
  /** What machine and pool say together. */
  inForce(): InForce
}
