import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import { ensureDefaults } from '@windlass/coordinator/accounts/bootstrap.ts'
import { createCallers } from '@windlass/coordinator/accounts/callers.ts'
import { createHandlers, type HandlerNeeds } from '@windlass/coordinator/api/index.ts'
import { openDatabase } from '@windlass/coordinator/db/client.ts'
import { startEmbedded } from '@windlass/coordinator/db/embedded.ts'
import { migrate } from '@windlass/coordinator/db/migrate.ts'
import { admit, identify } from '@windlass/coordinator/call/access.ts'
import { createGate } from '@windlass/coordinator/call/gate.ts'
import { type Plan, planPaths } from '@windlass/coordinator/call/plan.ts'
import { openLimits } from '@windlass/coordinator/limits/open.ts'
import { createStrangers } from '@windlass/coordinator/limits/strangers.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createBelongings } from './belongings.ts'
import { median, percentile } from './measure.ts'
import { atMost, type Report } from './row.ts'

const log = createLog({ process: 'bench' }, 'error')
const REQUESTS = 20_000
/** Limits that are looked at like any other, and never reached. */
const BOUNDLESS = 10_000_000

/**
 * What a request costs between its headers and its handler: who is it, may it come so often, may it do that. In this
 * process.
 */
export async function benchAccess(report: Report, repeats: number): Promise<void> {
  const own = createBelongings()
  try {
    const home = await own.add(mkdtemp(join(tmpdir(), 'windlass-bench-')), (path) =>
      rm(path, { recursive: true, force: true }),
    )
    const postgres = await own.add(startEmbedded({ home, log }), (server) => server.stop())
    const database = openDatabase({ url: postgres.url, max: 2, log })
    own.defer(() => database.close())
    const { limits, close } = openLimits({ url: postgres.url, identity: BOUNDLESS, org: BOUNDLESS, log })
    own.defer(() => close())
    await migrate(database, { log })
    const { key } = await mintApiKey(database.db, {
      orgId: await ensureDefaults(database.db),
      name: 'bench',
      role: 'owner',
    })
    const { verify: caller, knows } = createCallers({ db: database.db, log })
    const none = () => Promise.reject(new Error('nobody knocks here'))
    const verify = { knows: (_as: string, token: string) => knows(token), caller, runner: none, program: none }
    const gate = createGate({ log, strangers: createStrangers(BOUNDLESS) })
    const asked = { verify, gate, address: '127.0.0.1', requestId: 'bench' }
    const plan = planOf('runs.list')

    const access = async () => {
      const actor = await identify(plan, `Bearer ${key}`, asked)
      await limits.take(actor as Awaited<ReturnType<typeof caller>>)
      admit(plan, { org: 'default' }, actor)
    }
    const whole = await measured(access, repeats)
    const name = 'access: who, how often, may he'
    report({ name, value: whole.median, unit: 'µs', repeats: whole.medians, goal: atMost(whole.median, 50, 'µs') })
    report({ name: `${name}, p99`, value: median(whole.p99s), unit: 'µs', repeats: whole.p99s })

    const holder = await caller(key)
    const take = await measured(() => limits.take(holder), repeats)
    report({ name: 'access: how often', value: take.median, unit: 'µs', repeats: take.medians })
  } finally {
    await own.close()
  }
}

function planOf(id: string): Plan {
  const plans = planPaths(createHandlers({} as HandlerNeeds)).flatMap((path) => Object.values(path.methods))
  const plan = plans.find((each) => each?.row.id === id)
  if (!plan) throw new Error(`the table has no row ${id}`)
  return plan
}

/** Microseconds of each call by itself; the first round only warms up. */
async function measured(act: () => unknown, repeats: number) {
  const medians: number[] = []
  const p99s: number[] = []
  for (let i = -1; i < repeats; i++) {
    const times: number[] = []
    for (let n = 0; n < REQUESTS; n++) {
      const since = process.hrtime.bigint()
      await act()
      times.push(Number(process.hrtime.bigint() - since) / 1000)
    }
    if (i < 0) continue
    medians.push(median(times))
    p99s.push(percentile(times, 0.99))
  }
  return { median: median(medians), medians, p99s }
}
