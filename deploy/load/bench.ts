import { startBenchInstance } from './bench-instance.ts'
import { benchAccess } from './bench-access.ts'
import { benchApi } from './bench-api.ts'
import { benchAsleep } from './bench-asleep.ts'
import { benchCoordinator, benchEvents, benchStream } from './bench-coordinator.ts'
import { benchFleet } from './bench-fleet.ts'
import { benchChatty, benchIdle, COUNTING } from './bench-idle.ts'
import { benchKeyTiming } from './bench-key-timing.ts'
import { benchFanOut, benchSteps } from './bench-steps.ts'
import { benchEvictedWake, benchParked, benchSleep, benchWake } from './bench-wake.ts'
import { benchFirstLine, benchProcesses } from './bench-start-up.ts'
import { deployPrograms } from './programs.ts'
import { createReport } from './report.ts'

/** `npm run bench [-- --json] [--only first-line,processes,…] [--repeats 5]`. Misses are shown, and change no exit code. */
const GROUPS = [
  'idle',
  'first-line',
  'processes',
  'chatty',
  'coordinator',
  'events',
  'stream',
  'wake',
  'steps',
  'asleep',
  'fleet',
  'fan-out',
  'access',
  'api',
  'key-timing',
]
const DEFAULT_REPEATS = 5

const args = process.argv.slice(2)
const json = args.includes('--json')
const only = valueOf('--only')?.split(',') ?? GROUPS
const repeats = Number(valueOf('--repeats') ?? DEFAULT_REPEATS)
const unknown = only.filter((group) => !GROUPS.includes(group))
if (unknown.length > 0 || !Number.isInteger(repeats) || repeats < 1) {
  process.stderr.write(`usage: npm run bench -- [--json] [--only ${GROUPS.join(',')}] [--repeats ${DEFAULT_REPEATS}]\n`)
  process.exit(2)
}

function valueOf(flag: string): string | undefined {
  const at = args.indexOf(flag)
  return at === -1 ? undefined : args[at + 1]
}

const { report, missed } = createReport(json)
const wants = (...groups: string[]) => groups.some((group) => only.includes(group))

if (wants('first-line', 'processes', 'chatty')) {
  const instance = await startBenchInstance()
  try {
    await deployPrograms(instance.client)
    const agent = await instance.addAgent({ slots: 8 })
    if (wants('first-line')) await benchFirstLine(instance, report, repeats)
    if (wants('processes')) await benchProcesses(instance, report, repeats)
    if (wants('chatty')) await benchChatty(instance, agent.pid, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (wants('idle')) {
  const instance = await startBenchInstance(COUNTING)
  try {
    const agent = await instance.addAgent({ slots: 4 })
    await benchIdle(instance, agent.pid, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (wants('coordinator', 'events', 'stream')) {
  const instance = await startBenchInstance()
  try {
    await deployPrograms(instance.client)
    if (wants('coordinator')) await benchCoordinator(instance, report, repeats)
    if (wants('events')) await benchEvents(instance, report, repeats)
    if (wants('stream')) await benchStream(instance, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (wants('wake', 'steps', 'fan-out')) {
  const instance = await startBenchInstance()
  try {
    await deployPrograms(instance.client)
    const agent = await instance.addAgent({ slots: 8 })
    if (wants('wake')) await benchWake(instance, report, repeats)
    if (wants('wake')) await benchSleep(instance, report, repeats)
    if (wants('wake')) await benchParked(instance, agent.pid, report)
    if (wants('steps')) await benchSteps(instance, report, repeats)
    if (wants('fan-out')) await benchFanOut(instance, report, repeats)
    await agent.stop()
    if (wants('wake')) await benchEvictedWake(instance, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (wants('asleep')) {
  const instance = await startBenchInstance(COUNTING)
  try {
    await deployPrograms(instance.client)
    await benchAsleep(instance, report)
  } finally {
    await instance.stop()
  }
}
for (const pools of wants('fleet') ? [1, 10] : []) {
  const instance = await startBenchInstance(COUNTING)
  try {
    await instance.db`create extension pg_stat_statements`
    await benchFleet(instance, pools, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (wants('api')) {
  const instance = await startBenchInstance()
  try {
    await deployPrograms(instance.client)
    await benchApi(instance, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (wants('access')) await benchAccess(report, repeats)
if (wants('key-timing')) {
  const instance = await startBenchInstance()
  try {
    await benchKeyTiming(instance, report, repeats)
  } finally {
    await instance.stop()
  }
}
if (!json && missed().length > 0) process.stdout.write(`\nmissed: ${missed().join(', ')}\n`)
process.exit(0)
