// An agent on a slow line, down or up: what is large comes through, and the leases of its runs do not run out for it.
import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startAgent } from '../_kit/agents.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { deploy, ended, get, hasSaid, trigger } from '../_kit/runs.ts'
import { shaper } from '../_kit/shaper.ts'

const BYTES_A_SECOND = 250_000
const CHILDREN = 10
/** All of them take 40 s together, and one of them 5 s with what goes along. */
const OUTPUT_BYTES = 1_000_000
const FENCE_MS = 15_000
/** Upward. All that the program says takes some 40 s. */
const UP_BYTES_A_SECOND = 24_000
const LINES = 6000

const { current } = fileInstance({
  programs: [],
  env: {
    WINDLASS_HEARTBEAT_MS: '1000',
    WINDLASS_FENCE_MS: String(FENCE_MS),
    WINDLASS_LEASE_MS: String(FENCE_MS + 5000),
    WINDLASS_AMNESTY_MS: '0',
    WINDLASS_SWEEP_MS: '300',
  },
})

const files = (descriptor: object, program: string) => ({
  'workflow.jsonc': JSON.stringify(descriptor),
  'index.ts': program,
})

const PARENT = `
import { workflows } from 'windlass'
export async function run() {
  const all = await Promise.all(Array.from({ length: ${CHILDREN} }, (_, i) => workflows.call('child', { i })))
  return all.map((text) => (text as string).length)
}`
const CHILD = `
export async function run(input: { i: number }) { return String(input.i).repeat(${OUTPUT_BYTES}) }`
const COMPUTES = `
import { existsSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
export async function run(input: { gate: string }) {
  console.log('computing')
  while (!existsSync(input.gate)) await pause(100)
}`

const TALKS = `
import { setTimeout as pause } from 'node:timers/promises'
export async function run() {
  for (let n = 1; n <= ${LINES}; n++) console.log('x'.repeat(90) + n)
  await pause(${2 * FENCE_MS})
}`

test('the results of ten children reach their parent, and another run of its agent loses nothing', async (t) => {
  const { access, client, home } = current()
  const line = await shaper(access.url)
  t.after(() => line.close())
  const slow = await startAgent(current(), { name: 'slow', pool: 'slow', url: line.url })
  t.after(() => slow.stop())
  const quick = await startAgent(current(), { name: 'quick', pool: 'quick' })
  t.after(() => quick.stop())
  await deploy(client, files({ slug: 'parent', pool: 'slow' }, PARENT))
  await deploy(client, files({ slug: 'child', pool: 'quick' }, CHILD))
  await deploy(client, files({ slug: 'computes', pool: 'slow' }, COMPUTES))
  const gate = join(home, 'gate')
  const computing = await trigger(client, 'computes', { gate })
  await hasSaid(client, computing, 'log.stdout', 'computing')
  const parent = await trigger(client, 'parent')
  await hasSaid(client, parent, 'run.waiting_for_child')
  line.pace(BYTES_A_SECOND)
  const { status, attempt } = await ended(client, parent, 300_000)
  assert.deepEqual([status, attempt], ['completed', 1])
  assert.deepEqual((await client.runs.output({ run: parent })).output, Array(CHILDREN).fill(OUTPUT_BYTES))
  assert.equal((await get(client, computing)).attempt, 1)
  writeFileSync(gate, '')
  assert.equal((await ended(client, computing)).attempt, 1)
})

test('a program that says more than its line brings in time keeps its lease', async (t) => {
  const { access, client } = current()
  const line = await shaper(access.url)
  t.after(() => line.close())
  const agent = await startAgent(current(), { name: 'upward', pool: 'upward', url: line.url })
  t.after(() => agent.stop())
  await deploy(client, files({ slug: 'talks', pool: 'upward' }, TALKS))
  line.paceUp(UP_BYTES_A_SECOND)
  const { status, attempt } = await ended(client, await trigger(client, 'talks'), 300_000)
  assert.deepEqual([status, attempt], ['completed', 1])
})
