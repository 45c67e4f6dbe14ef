import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '@windlass/coordinator/db/client.ts'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import { isFinal, mayMove, type Run, type RunStatus } from '@windlass/shared/model/run.ts'
import type { Client } from 'windlass/client'
import type { Input, Node } from '../programs/durable/interpreter/ast.ts'
import { type AgentOptions, ensurePool, startAgent, type TestAgent } from './agents.ts'
import { fileInstance } from './file-instance.ts'
import type { Instance } from './instance.ts'
import { movesOf } from './moves.ts'
import { deploy, get, programFiles, wholeLog } from './runs.ts'
import { until } from './until.ts'

/**
 * Whether a waiting program keeps its process, or loses it at once so that every suspension is replayed. Each is the name of a
 * pool with one agent, and of the interpreter deployed there.
 */
export const MODES = ['parked', 'replayed'] as const
export type Mode = (typeof MODES)[number]

export interface DurableOptions {
  programs?: readonly string[]
  slots?: number
  env?: Record<string, string>
  /** Before the first test, with all of it there. */
  onceUp?: () => Promise<void>
}

export interface Durable {
  current: () => Instance
  client: () => Client
  database: () => Database
  /** For what programs note and what they wait for. */
  folder: () => string
  agent(mode: Mode): TestAgent
  /** One more, which is stopped with the others. */
  join(options: AgentOptions): Promise<TestAgent>
  /** The interpreter under another name, or with other settings in its descriptor. */
  interpreter(descriptor: { slug: string } & Record<string, unknown>): Promise<void>
}

/** So short that what they end is over many times within a test, so long that a busy machine does not end it by itself. */
export const SHORT = {
  WINDLASS_HEARTBEAT_MS: '500',
  WINDLASS_FENCE_MS: '5000',
  WINDLASS_LEASE_MS: '7000',
  WINDLASS_AMNESTY_MS: '1000',
  WINDLASS_OFFER_MS: '3000',
  WINDLASS_SWEEP_MS: '300',
}
/** Every suspension gives up the process at once. */
export const ALWAYS_REPLAY = { WINDLASS_AGENT_PARKED_MS: '0' }

const INTERPRETER = { timeout: '5m', cancelGrace: '2s', process: 'reuse', retries: { crash: 20 } }

/** An instance with an agent for each mode. After the last test its invariants are checked. */
export function durableInstance({ programs = [], slots = 4, env, onceUp }: DurableOptions = {}): Durable {
  const agents: TestAgent[] = []
  const settings = { WINDLASS_AGENT_SPARES: '0', ...SHORT, ...env }
  const { current, database } = fileInstance({ programs, env: settings, onceUp: setUp, beforeStop: conclude })
  const client = () => current().client
  const folder = () => join(current().home, 'notes')

  async function startOne(options: AgentOptions): Promise<TestAgent> {
    const agent = await startAgent(current(), options)
    agents.push(agent)
    return agent
  }

  async function interpreter(descriptor: { slug: string } & Record<string, unknown>): Promise<void> {
    await deploy(client(), programFiles('durable/interpreter', { ...INTERPRETER, ...descriptor }))
  }

  async function conclude(): Promise<void> {
    try {
      await keepsItsRules(current())
    } finally {
      await Promise.all(agents.map((agent) => agent.stop()))
    }
  }

  async function setUp(): Promise<void> {
    mkdirSync(folder())
    await Promise.all(MODES.map((mode) => ensurePool(client(), mode)))
    await Promise.all([
      startOne({ name: 'parked', pool: 'parked', slots }),
      startOne({ name: 'replayed', pool: 'replayed', slots, env: ALWAYS_REPLAY }),
      ...MODES.map((mode) => interpreter({ slug: mode, pool: mode })),
    ])
    await onceUp?.()
  }

  return {
    current,
    client,
    database,
    folder,
    interpreter,
    join: startOne,
    agent: (mode) => agents.find(({ name }) => name === mode)!,
  }
}

/** Starts a program of the interpreter, which keeps its notes under the key. */
export async function begin(durable: Durable, workflow: string, program: Node, key?: string): Promise<string> {
  const input: Input = { program, ...(key !== undefined && { folder: durable.folder(), key }) }
  return (await durable.client().runs.trigger({ workflow, input })).run.id
}

export async function isNow(client: Client, run: string, status: RunStatus): Promise<Run> {
  let last: Run | undefined
  const look = async () => {
    last = await get(client, run)
    if (isFinal(last.status) && last.status !== status)
      throw new Error(`${run} is ${last.status}: ${last.error?.message}`)
    return last.status === status && last
  }
  return until(`${run} to be ${status}`, look, { more: () => `It is ${last?.status}.` })
}

/** Its process is gone and its journal is all that there is of it. */
export async function isEvicted({ database }: Durable, run: string): Promise<void> {
  const { db } = database()
  const look = async () => (await db<{ place: string | null }[]>`select place from runs where id = ${run}`)[0]
  await until(`${run} to be evicted`, async () => (await look())?.place === null)
}

/** Suspended, and as far gone as the mode takes it. */
export async function rests(durable: Durable, mode: Mode, run: string, status: RunStatus): Promise<void> {
  await isNow(durable.client(), run, status)
  if (mode === 'replayed') await isEvicted(durable, run)
}

/** The open questions of a run, once there are so many. */
export function questionsOf(client: Client, run: string, count = 1): Promise<PendingInput[]> {
  const look = async () => {
    const { inputs } = await client.inputs.list({ run, limit: 100 })
    return inputs.length >= count && inputs
  }
  return until(`${count} questions of ${run}`, look)
}

export async function outputOf(client: Client, run: string): Promise<unknown> {
  return (await client.runs.output({ run })).output
}

/** Whatever the tests did: runs moved only as they may, and none was ever without somebody to care for it. */
export async function keepsItsRules({ access, client }: Instance): Promise<void> {
  const wrong: string[] = []
  for (const run of await allRuns(client)) {
    for (const [from, to] of movesOf(await wholeLog(client, run.id))) {
      if (!mayMove(from, to)) wrong.push(`${run.id} went from ${from} to ${to}`)
    }
  }
  assert.deepEqual(wrong, [])
  assert.equal(await metric(access.url, 'windlass_orphans_total'), 0)
}

export async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const lines = text.split('\n').filter((line) => line.startsWith(`${name} `) || line.startsWith(`${name}{`))
  assert.ok(lines.length > 0, `no ${name} in /metrics`)
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0)
}

export async function allRuns(client: Client, filter: { status?: RunStatus[] } = {}): Promise<Run[]> {
  const found: Run[] = []
  for (let cursor: string | undefined; ;) {
    const page = await client.runs.list({ limit: 100, ...filter, ...(cursor && { cursor }) })
    found.push(...page.runs)
    if (page.nextCursor === null) return found
    cursor = page.nextCursor
  }
}
