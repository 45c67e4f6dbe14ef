import { seedRuns } from '@windlass/coordinator/test/_kit/seeded-runs.ts'
import { type BareServer, startBareServer } from './bare-server.ts'
import { benchGetRun } from './bench-get-run.ts'
import type { BenchInstance } from './bench-instance.ts'
import { type Answer, httpLoad, openPoster, type Target } from './http-load.ts'
import { type CpuParts, meter, partsOf } from './cpu.ts'
import { median, percentile } from './measure.ts'
import { treeCpuMs } from './processes.ts'
import type { Report } from './row.ts'

const CONNECTIONS = 32
const FOR_MS = 2000
/** `WINDLASS_BENCH_RUNS`: in the table before anything is measured. */
const RUNS = Number(process.env['WINDLASS_BENCH_RUNS'] ?? 1_000_000)
const INPUT = { customer: 4711, address: { zip: '10115' } }
const WORKFLOWS = { common: 'noop-fresh', rare: 'noop-reuse' }

/** One request that is sent again and again, and what it is held against. */
interface Case extends Omit<Target, 'url' | 'apiKey'> {
  name: string
  /** Path of the constant whose answer is as long as ours. */
  bare: string
  expect: number
}

interface Measured {
  perSecond: number
  p99: number
  /** CPU of a request, in microseconds. */
  serverMicros: number
  databaseMicros: number
}

/** What callers of the API get out of one coordinator, beside a bare server of the same framework. */
export async function benchApi(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const { run } = await instance.client.runs.trigger({ workflow: WORKFLOWS.common })
  await benchGetRun(instance, report, {
    run: run.id,
    repeats,
    seed: async (db) => {
      const since = performance.now()
      await seedRuns(db, { org: 'default', count: RUNS, workflows: WORKFLOWS })
      const seconds = (performance.now() - since) / 1000
      report({ name: `seeding ${RUNS} runs`, value: seconds, unit: 's', better: 'neither' })
    },
  })
  // Else what the seeding has left behind is written while the first figures are taken.
  await instance.db`checkpoint`
  const one = await ask(instance, `/v1/runs/${run.id}`)
  const list = await ask(instance, '/v1/orgs/default/runs')
  const bare = await startBareServer({ '/run': one.body, '/list': list.body })
  try {
    for (const each of [...(await reads(instance, run.id, one)), ...writes()]) {
      await measure({ instance, bare, each, report, repeats })
    }
  } finally {
    await bare.stop()
  }
}

async function reads(instance: BenchInstance, id: string, one: Answer): Promise<Case[]> {
  const etag = /\r\netag: *(\S+)/i.exec(one.head)![1]!
  const list = { method: 'GET', expect: 200, bare: '/list' } as const
  const runs = '/v1/orgs/default/runs'
  const aWeekAgo = Date.now() - 7 * 86_400_000
  const found = (name: string, query: string): Case => ({ ...list, name: `list, ${name}`, path: `${runs}?${query}` })
  return [
    {
      name: 'get run, 304',
      method: 'GET',
      path: `/v1/runs/${id}`,
      headers: { 'If-None-Match': etag },
      expect: 304,
      bare: '/run',
    },
    { name: 'get run', method: 'GET', path: `/v1/runs/${id}`, expect: 200, bare: '/run' },
    found('first page of 50', ''),
    found('last page', `cursor=${await lastCursor(instance)}`),
    found('status of most', 'status=completed'),
    found('status of few', 'status=cancelled'),
    found('status of none', 'status=running'),
    found('unfinished', 'status=queued,pending,running,sleeping,awaiting_input,waiting_for_child,cancelling'),
    found('workflow of few', `workflow=${WORKFLOWS.rare}`),
    found('tag of many', 'tag=nightly'),
    found('tag of few', 'tag=rare'),
    found('one day, a week ago', `createdAfter=${aWeekAgo}&createdBefore=${aWeekAgo + 86_400_000}`),
  ]
}

function writes(): Case[] {
  const body = JSON.stringify({ input: INPUT })
  const path = `/v1/orgs/default/workflows/${WORKFLOWS.common}/runs`
  return [
    { name: 'trigger over REST', method: 'POST', path, body, expect: 201, bare: '/run' },
    overMcp('trigger over MCP, 2025-11-25', '2025-11-25', {}),
    overMcp('trigger over MCP, 2026-07-28', '2026-07-28', { 'Mcp-Method': 'tools/call', 'Mcp-Name': TOOL }),
  ]
}

const TOOL = 'trigger_now'
const ERA = 'io.modelcontextprotocol'

/** The same trigger as a call of a tool, with what the revision wants to see in headers and body. */
function overMcp(name: string, revision: string, headers: Record<string, string>): Case {
  const isStateless = revision >= '2026'
  const meta = {
    [`${ERA}/protocolVersion`]: revision,
    [`${ERA}/clientInfo`]: { name: 'bench', version: '1' },
    [`${ERA}/clientCapabilities`]: {},
  }
  const params = {
    name: TOOL,
    arguments: { workflow: WORKFLOWS.common, input: INPUT },
    ...(isStateless && { _meta: meta }),
  }
  return {
    name,
    method: 'POST',
    path: '/mcp/v1',
    headers: { 'Mcp-Protocol-Version': revision, Accept: 'application/json, text/event-stream', ...headers },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
    expect: 200,
    bare: '/run',
  }
}

/** Of the page that ends with the oldest run. */
async function lastCursor({ db }: BenchInstance): Promise<string> {
  const [row] = await db<[{ id: string }]>`
    select id
    from (select id from runs order by id limit 51) oldest
    order by id desc
    limit 1`
  return Buffer.from(row.id).toString('base64url')
}

interface Measuring {
  instance: BenchInstance
  bare: BareServer
  each: Case
  report: Report
  repeats: number
}

/** Ours and the bare server by turns, so that both see the same machine. */
async function measure({ instance, bare, each, report, repeats }: Measuring): Promise<void> {
  const ours: Measured[] = []
  const bares: Measured[] = []
  const { expect, bare: path, ...rest } = each
  const target = { ...rest, apiKey: instance.apiKey }
  const bareParts = { coordinator: () => treeCpuMs(bare.pid) }
  for (let i = -1; i < repeats; i++) {
    const expected = each.method === 'GET' ? 200 : 201
    const constant = await load({ ...target, path, url: bare.url }, expected, bareParts)
    const product = await load({ ...target, path: each.path, url: instance.url }, expect, partsOf(instance))
    if (i < 0) continue
    bares.push(constant)
    ours.push(product)
  }
  reportCase(report, each.name, ours, bares)
}

function reportCase(report: Report, name: string, ours: readonly Measured[], bares: readonly Measured[]): void {
  const row = (key: keyof Measured, isHeld = true) => {
    const repeats = ours.map((each) => each[key])
    const ratios = repeats.map((value, i) => value / bares[i]![key])
    const bare = median(bares.map((each) => each[key]))
    return {
      value: median(repeats),
      repeats,
      ...(isHeld && {
        ratio: { to: 'bare', value: median(ratios), repeats: ratios },
        note: `bare: ${bare >= 100 ? Math.round(bare) : bare.toPrecision(3)}`,
      }),
    }
  }
  report({ name, unit: '/s', ...row('perSecond') })
  report({ name: `${name}: p99`, unit: 'ms', ...row('p99') })
  report({ name: `${name}: CPU, coordinator`, unit: 'µs', ...row('serverMicros') })
  report({ name: `${name}: CPU, PostgreSQL`, unit: 'µs', ...row('databaseMicros', false) })
}

async function load(target: Target, expect: number, parts: CpuParts): Promise<Measured> {
  const used = meter(parts)
  const { failed, tookMs, latencies } = await httpLoad({ ...target, expect, connections: CONNECTIONS, forMs: FOR_MS })
  const cpu = used(latencies.length / 1000)
  if (failed > 0) throw new Error(`${failed} answers to ${target.path} were not ${expect}`)
  return {
    perSecond: latencies.length / (tookMs / 1000),
    p99: percentile(latencies, 0.99),
    serverMicros: cpu['coordinator']!,
    databaseMicros: cpu['PostgreSQL'] ?? 0,
  }
}

async function ask({ url, apiKey }: BenchInstance, path: string): Promise<Answer> {
  const poster = await openPoster({ url, apiKey, path, method: 'GET' })
  const answer = await poster.post()
  poster.close()
  return answer
}
