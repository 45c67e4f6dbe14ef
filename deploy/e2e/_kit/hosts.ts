import { execFileSync } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import type { Cluster } from './cluster.ts'
import { ensurePool } from './agents.ts'
import type { Lan, NetHost } from './netns.ts'
import { type Shaper, shaper } from './shaper.ts'
import { watchAgent, type Watched } from './start-process.ts'

export interface HostOptions {
  name: string
  pool: string
  slots?: number
  env?: Record<string, string>
  /** Which of the coordinators it speaks to; the first by default. */
  coordinator?: number
}

/** A machine with an agent. */
export interface FleetHost {
  readonly name: string
  readonly net: NetHost
  /** All that its agent hears and says goes this way. */
  readonly way: Shaper
  process(): Watched
  isAlive(): boolean
  /** SIGKILL; its programs are left to notice it. */
  kill(): Promise<void>
  /** SIGTERM, and its exit code. */
  stop(): Promise<number | string>
  /** Again with the same folder, its wall clock wrong by so much. */
  start(options?: { clockShiftMs?: number }): Promise<void>
  /** Everything on it is killed; the folder is kept, and the next start is on another boot. */
  reboot(): Promise<void>
  /** Nothing more can be written below the agent's folder, until it is freed. */
  fillDisk(): void
  freeDisk(): void
  /** Takes its folder down. */
  remove(): Promise<void>
}

const DISK_MB = 96
const STARTED_MS = 60_000
const STOPPED_MS = 60_000
const CLOCK_SHIFT = join(import.meta.dirname, 'clock-shift.ts')
/** Joins and starts; its disk is a small one of its own. */
export async function startHost(cluster: Cluster, lan: Lan, options: HostOptions): Promise<FleetHost> {
  const { name, pool, slots = 4, coordinator = 0 } = options
  const net = lan.addHost(name)
  const disk = join(cluster.home, name)
  mkdirSync(disk)
  execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK_MB}m`, 'tmpfs', disk])
  const way = await shaper(cluster.urls[coordinator]!, lan.address)
  const env = {
    WINDLASS_URL: way.url,
    WINDLASS_AGENT_ALLOW_HTTP: 'true',
    WINDLASS_AGENT_HOME: join(disk, 'agent'),
    WINDLASS_AGENT_NAME: name,
    WINDLASS_AGENT_SLOTS: String(slots),
    WINDLASS_AGENT_SPARES: '0',
    // A disk as small as ours is no trouble by itself.
    WINDLASS_AGENT_DISK_RESERVE_MB: '2',
    WINDLASS_AGENT_STOP_MS: '4000',
    WINDLASS_AGENT_CONFIG: 'none',
    ...options.env,
  }
  const token = await tokenFor(cluster, pool)
  const launch = (more: Record<string, string>, nodeArgs: string[] = []) =>
    watchAgent({ env: { ...env, ...more }, prefix: net.prefix(), nodeArgs, cwd: disk })
  let process = launch({ WINDLASS_AGENT_TOKEN: token })
  const isAlive = () => process.child.exitCode === null && process.child.signalCode === null
  const ballast = join(disk, 'ballast')
  const host: FleetHost = {
    name,
    net,
    way,
    process: () => process,
    isAlive,
    async kill() {
      process.child.kill('SIGKILL')
      await process.ended(STOPPED_MS)
    },
    async stop() {
      if (isAlive()) process.child.kill('SIGTERM')
      return process.ended(STOPPED_MS)
    },
    async start({ clockShiftMs = 0 } = {}) {
      if (isAlive()) return
      const isWrong = clockShiftMs !== 0
      process = launch(
        isWrong ? { CLOCK_SHIFT_MS: String(clockShiftMs) } : {},
        isWrong ? ['--import', CLOCK_SHIFT] : [],
      )
      await process.says('agent.started', STARTED_MS)
    },
    async reboot() {
      net.reboot()
      await process.ended(STOPPED_MS)
    },
    fillDisk: () => fillDisk(ballast),
    freeDisk: () => rmSync(ballast, { force: true }),
    async remove() {
      net.reboot()
      await way.close()
      execFileSync('umount', ['-l', disk])
    },
  }
  try {
    await process.says('agent.started', STARTED_MS)
    return host
  } catch (error) {
    await host.remove()
    throw error
  }
}

async function tokenFor({ client }: Cluster, pool: string): Promise<string> {
  const { registrationToken } = await client.pools.createToken({ pool: await ensurePool(client, pool) })
  return registrationToken.token
}
