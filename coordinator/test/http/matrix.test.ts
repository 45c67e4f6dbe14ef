import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { requestOf } from '@windlass/shared/ops/call.ts'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isPublic } from '@windlass/shared/ops/op.ts'
import { SCOPES } from '@windlass/shared/scopes.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { type Expected, KINDS, type Kind, type Trial, type World } from '../_kit/matrix.ts'
import { makeTokens } from '../_kit/matrix-tokens.ts'
import { sampleArgs } from '../_kit/matrix-samples.ts'
import { twoTenants } from '../_kit/tenants.ts'
import type { Envelope } from './stub-server.ts'

let c: TestCoordinator
let world: World

/** A run token and a runner token of the test must not age before they are used. */
const LANES = 8

before(async () => {
  c = await aCoordinator()
  const { ours, theirs } = await twoTenants(c)
  const others = allOps.map((row) => SCOPES.filter((scope) => !row.scope.includes(scope)))
  world = { ours, theirs, tokens: await makeTokens(ours, theirs, others) }
})
after(async () => {
  world.ours.agent.close()
  world.theirs.agent.close()
  await c.stop()
})

interface Cell {
  row: AnyOp
  kind: Kind
  trial: Trial
}

const cellsOf = (row: AnyOp, kind: Kind): Cell[] => kind.trials(row, world).map((trial) => ({ row, kind, trial }))
const kindsOf = (row: AnyOp) =>
  KINDS.filter(({ credentials }) =>
    isPublic(row) ? credentials.length === 0 : credentials.some((one) => row.credentials.includes(one)),
  )

const forRunners = (row: AnyOp) => Number(row.credentials.includes('runner'))

test('every row answers every kind of credential as the specification says', async (t) => {
  const cells: Cell[] = []
  const holes: string[] = []
  let inapplicable = 0
  // The tokens of agents live for a minute; all of it may take longer on a busy machine.
  for (const row of allOps.toSorted((a, b) => forRunners(b) - forRunners(a))) {
    for (const kind of kindsOf(row)) {
      const found = kind.unless?.(row) === undefined ? cellsOf(row, kind) : undefined
      if (!found) inapplicable++
      else if (found.length === 0) holes.push(`${row.id} × ${kind.name}`)
      cells.push(...(found ?? []))
    }
  }
  assert.deepEqual(holes, [], 'no case was made for these')
  const wrong = await tryAll(cells)
  t.diagnostic(
    `${cells.length} cases: ${allOps.length} rows, ${KINDS.length} kinds; ${inapplicable} pairs that cannot be, each with its reason`,
  )
  assert.deepEqual(wrong, [])
})

test('every row is for a credential that the matrix tries', () => {
  for (const row of allOps) assert.ok(kindsOf(row).length > 0, `no kind of credential is for ${row.id}`)
})

test('a row that takes what has no sample is named, with the file that lacks it', () => {
  const row: AnyOp = { ...ops.pools.create, id: 'pools.juggle' }
  assert.throws(() => sampleArgs(row, world.ours), /pools\.juggle takes `name`: give it one in .*matrix-samples/)
  const nameless: AnyOp = { ...ops.account.get, path: '/v1/boats/{boat}' }
  assert.throws(() => sampleArgs(nameless, world.ours), /names \{boat\}: give each tenant one/)
})

async function tryAll(cells: Cell[]): Promise<string[]> {
  const wrong: string[] = []
  const waiting = cells.values()
  const lane = async () => {
    for (const cell of waiting) {
      const complaint = await tryOnce(cell).catch(unanswered)
      if (complaint !== undefined) wrong.push(`${cell.row.id} × ${cell.kind.name} (${cell.trial.as}): ${complaint}`)
    }
  }
  await Promise.all(Array.from({ length: LANES }, lane))
  return wrong.sort()
}

const unanswered = (error: Error) =>
  `no answer: ${error.message} ${error.cause instanceof Error ? error.cause.message : ''}`

async function tryOnce({ row, trial }: Cell): Promise<string | undefined> {
  const response = await send(row, trial)
  const complaint = await complaintOf(row, trial, response)
  if (response.bodyUsed) return complaint
  // A stream would go on, and its connection with it; all else is read, so that the connection serves the next case.
  if (isStream(response)) await response.body?.cancel()
  else await response.arrayBuffer()
  return complaint
}

/**
 * Who is to pass with a request that changes something passes with one more field than the row has: it is refused by
 * the schema, once it is let in, and the next case finds everything as it was. What really changes something is tried in audited.test.ts.
 */
// What other systems post has no schema.
const isProbed = (row: AnyOp, expected: Expected) => expected === 'passes' && row.method !== 'GET' && row.body !== 'raw'

function send(row: AnyOp, { args, authorization, expected }: Trial): Promise<Response> {
  const { url, method, headers, body } = requestOf(
    { url: c.url },
    row,
    isProbed(row, expected) ? { ...args, probe: '1' } : args,
  )
  if (authorization !== undefined) headers['authorization'] = authorization
  return fetch(url, { method, headers, body: body ?? null, signal: AbortSignal.timeout(DEADLINE_MS) })
}

async function complaintOf(row: AnyOp, { expected }: Trial, response: Response): Promise<string | undefined> {
  const { status } = response
  if (expected === 'passes') return complaintOfPassing(row, response)
  const wanted = typeof expected === 'number' ? expected : 403
  if (status !== wanted) return `${status} in place of ${wanted}: ${await start(response)}`
  const { error } = (await response.json()) as Envelope
  const code = { 401: 'UNAUTHENTICATED', 403: 'FORBIDDEN', 404: 'NOT_FOUND' }[wanted]
  if (error.code !== code) return `${error.code} in place of ${code}`
  if (!response.headers.get('x-request-id')?.startsWith('req_')) return 'no request id'
  if (wanted === 401 && response.headers.get('www-authenticate') === null) return 'no WWW-Authenticate'
  if (typeof expected !== 'object') return undefined
  const needs = Object.keys(error.detail?.['needs'] ?? {})
  return needs.join() === expected.lacks ? undefined : `it says that ${needs.join()} is lacking, not ${expected.lacks}`
}

async function complaintOfPassing(row: AnyOp, response: Response): Promise<string | undefined> {
  const { status } = response
  // A signature is no credential of ours: whoever lacks one is let in, and told so.
  if (row.body === 'raw' && (status === 200 || status === 401)) return undefined
  const isFine = isProbed(row, 'passes') ? status === 400 : status < 500 && ![401, 403, 404].includes(status)
  if (isFine) return undefined
  return `${status} where it should pass: ${await start(response)}`
}

const isStream = (response: Response) => response.headers.get('content-type')?.startsWith('text/event-stream') === true

async function start(response: Response): Promise<string> {
  return isStream(response) ? 'a stream' : (await response.text()).slice(0, 200)
}
