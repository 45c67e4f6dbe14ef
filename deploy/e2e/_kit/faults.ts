import { setTimeout as wait } from 'node:timers/promises'
import type { FleetHost } from './hosts.ts'
import type { Random } from '@windlass/shared/test/_kit/seed.ts'
import { SCALE } from './cluster.ts'

/** Something goes wrong with a host for a while; afterwards all is as before. Answers what it was, with its figures. */
export type Fault = (host: FleetHost, random: Random) => Promise<string>

const CLOCK_OFF_MS = 600_000
/** By the timing of the design. */
const PARTITION_MS = 90_000
const scaled = (ms: number) => Math.round(ms / SCALE)
const CUT = { toHost: 100, fromHost: 100 }
const WHOLE = { toHost: 0, fromHost: 0 }

const partition: Fault = async ({ net }, _random) => {
  net.loses(CUT)
  await wait(scaled(PARTITION_MS))
  net.loses(WHOLE)
  return 'partition'
}

/** Some are over before anybody stops anything, some after the fence and before the lease. */
const shortPartition: Fault = async ({ net }, random) => {
  const ms = scaled(random.between(5_000, 80_000))
  net.loses(CUT)
  await wait(ms)
  net.loses(WHOLE)
  return `partition of ${ms} ms`
}

const oneWay: Fault = async ({ net }, random) => {
  const isDeaf = random.next() < 0.5
  net.loses(isDeaf ? { ...WHOLE, toHost: 100 } : { ...WHOLE, fromHost: 100 })
  await wait(scaled(PARTITION_MS))
  net.loses(WHOLE)
  return isDeaf ? 'deaf' : 'mute'
}

const loss: Fault = async ({ net }, random) => {
  const percent = random.between(5, 20)
  net.loses({ toHost: percent, fromHost: percent })
  await wait(scaled(PARTITION_MS))
  net.loses(WHOLE)
  return `${percent} % of the packets lost`
}

const slowLink: Fault = async ({ net, way }, random) => {
  const ms = random.between(50, 200)
  net.hasRate(256)
  way.delay(ms)
  await wait(scaled(PARTITION_MS))
  way.delay(0)
  net.hasRate(undefined)
  return `256 kbit/s and ${ms} ms`
}

const cutConnections: Fault = async ({ way }, random) => {
  const before = way.cuts()
  way.cut(() => random.between(1, 800))
  await wait(scaled(60_000))
  way.cut(undefined)
  return `${way.cuts() - before} connections cut at random bytes`
}

const diskFull: Fault = async (host, random) => {
  const ms = scaled(random.between(30_000, 90_000))
  host.fillDisk()
  await wait(ms)
  host.freeDisk()
  if (!host.isAlive()) await host.start()
  return `disk full for ${ms} ms`
}

const wrongClock: Fault = async (host, random) => {
  const clockShiftMs = random.pick([CLOCK_OFF_MS, -CLOCK_OFF_MS])
  await host.kill()
  await host.start({ clockShiftMs })
  await wait(scaled(60_000))
  await host.kill()
  await host.start()
  return `clock off by ${clockShiftMs} ms`
}

const daemonKilled: Fault = async (host, random) => {
  const ms = scaled(random.between(0, 120_000))
  await host.kill()
  await wait(ms)
  await host.start()
  return `daemon killed, back after ${ms} ms`
}

const rebooted: Fault = async (host, random) => {
  const ms = scaled(random.between(10_000, 120_000))
  await host.reboot()
  await wait(ms)
  await host.start()
  return `rebooted, back after ${ms} ms`
}

/** Asleep: neither the agent nor its programs get any time, and all of them go on as if nothing had been. */
const frozen: Fault = async ({ net }, random) => {
  const ms = scaled(random.between(30_000, 120_000))
  const pids = net.pids()
  for (const pid of pids) signal(pid, 'SIGSTOP')
  await wait(ms)
  for (const pid of pids) signal(pid, 'SIGCONT')
  return `frozen for ${ms} ms`
}

const stopped: Fault = async (host) => {
  const code = await host.stop()
  if (code !== 0) throw new Error(`${host.name} was asked to stop and ended with ${code}:\n${host.process().stderr()}`)
  await host.start()
  return 'stopped and started'
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

export const FAULTS = {
  partition,
  shortPartition,
  oneWay,
  loss,
  slowLink,
  cutConnections,
  diskFull,
  wrongClock,
  daemonKilled,
  rebooted,
  frozen,
  stopped,
} as const
export type FaultName = keyof typeof FAULTS
