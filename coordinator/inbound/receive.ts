import { isDeepStrictEqual } from 'node:util'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId } from '@windlass/shared/ids.ts'
import type { DeliveryReceipt } from '@windlass/shared/model/delivery.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { GroupCommit } from '../db/group-commit.ts'
import { openOwned } from '../environments/owned-secrets.ts'
import type { SecretKeys } from '../environments/secret-keys.ts'
import type { Known } from '../limits/bytes-in-flight.ts'
import type { Limits } from '../limits/limits.ts'
import type { PerMinute } from '../limits/per-minute.ts'
import type { SourceGate } from '../limits/source-gate.ts'
import { networkOf } from '../limits/strangers.ts'
import { isLongAgo } from '../stay.ts'
import type { RunAddress } from '../runs/store.ts'
import { checkBody } from './check-body.ts'
import type { Committed } from './commit.ts'
import { storable, withoutCredentials } from './rules/headers.ts'
import { beginCheck, type Check, type Verdict } from './rules/signature.ts'
import { findSource, type InboundSource } from './sources.ts'
import { setReason } from './store-deliveries.ts'
import { note, sourceFields, take, type TakeDeps, type Taken, type Verified } from './take.ts'
import { type CountRow, type CountUnverified, CUT_REASON } from './unverified.ts'

export type ReceiveDeps = TakeDeps & {
  secretKeys: SecretKeys
  sourceGate: SourceGate
  runReads: GroupCommit<RunAddress, Run | undefined>
  /** How many verified deliveries a source may send. */
  deliveryLimits: Limits
  /** How many unverified ones an address may send. */
  unverified: PerMinute
  countUnverified: CountUnverified
  /** The first of a source in a minute that was one too many is recorded. */
  tooManyNoted: PerMinute
}

/** A request whose body is still coming. */
export interface Incoming {
  method: string
  /** Where the sender was told to post. */
  url: string
  query: string
  headers: Readonly<Record<string, string>>
  /** The sender's. */
  address: string
  /** Fires when the sender has hung up. */
  gone: () => AbortSignal
  read(options: { keep?: number; onPiece: (piece: Uint8Array) => void }): Promise<{ saved: Buffer; bytes: number }>
  /** Counts its bytes for the address until they are somebody's. */
  known: Known
}

export interface Received {
  source: InboundSource
  receipt: DeliveryReceipt
  handshake?: Taken['handshake']
}

/** What is kept of a payload that nobody has signed: all of it, up to this. */
const UNVERIFIED_BYTES = 1024 * 1024
/** What is kept of a larger payload that nobody has signed. */
const CUT_BYTES = 4 * 1024
const MINUTE_MS = 60_000

/**
 * Takes a delivery. It is answered when it is committed, with all that it started: a sender that gets no answer sends
 * it again, and nothing is started twice.
 */
export async function receive(deps: ReceiveDeps, sourceId: string, incoming: Incoming): Promise<Received> {
  const found = await findWithSecrets(deps, sourceId, incoming)
  const since = performance.now()
  const check = checkBy(found, incoming)
  const { saved, bytes } = await incoming.read({
    ...(check.isHopeless && { keep: UNVERIFIED_BYTES }),
    onPiece: (piece) => check.update(piece),
  })
  // A body may take a minute.
  const isSlow = isLongAgo(since)
  const first = { ...found, verdict: check.end() }
  const judged = first.verdict.isVerified && isSlow ? await judgeAgain(deps, first, incoming, saved) : first
  const accepted = async ({ source, secrets, verdict }: Judged) => {
    if (!verdict.isVerified)
      throw await refused(deps, { source, secrets, incoming, saved, bytes, reason: verdict.reason })
    return { source, secrets, once: verdict.once }
  }
  const { source, secrets, once } = await accepted(judged)
  const verified = verifiedOf({ source, secrets }, incoming, saved)
  await holdForOrg(deps, verified, incoming)
  await assertRate(deps, verified)
  const lookAgain = async () => (await accepted(await judgeAgain(deps, judged, incoming, saved))).source
  const taken = take(deps, { ...verified, once, known: incoming.known }, lookAgain)
  const { id, committed, handshake } = await taken.catch((error) => noteTooMany(deps, verified, error))
  return { source, receipt: await receiptOf(deps, source, { id, committed }), ...(handshake && { handshake }) }
}

interface Found {
  source: InboundSource
  /** Those that serve now, the current one first. */
  secrets: readonly string[]
}

type Judged = Found & { verdict: Verdict }

function findWithSecrets(deps: ReceiveDeps, id: string, { address, gone }: Incoming): Promise<Found> {
  return deps.sourceGate.pass({ id, address, gone, what: 'secrets' }, async () => {
    const [source, secrets] = await Promise.all([findSource(deps, id), openOwned(deps, id)])
    return source && { orgId: source.orgId, source, secrets }
  })
}

function checkBy({ source, secrets }: Found, { method, url, headers }: Incoming): Check {
  return beginCheck(source.auth, { head: { method, url, headers }, secrets, at: source.now.getTime() })
}

/**
 * Judges a verified delivery, of which all is saved, by what holds after its body has come, or its input was
 * checked: the secret may have been replaced, and the source may be paused or gone. To check 25 MiB again takes
 * a while, so it is done only where the check would be another one.
 */
async function judgeAgain(deps: ReceiveDeps, before: Judged, incoming: Incoming, saved: Buffer) {
  const { source, secrets } = await findWithSecrets(deps, before.source.id, incoming)
  const isSame = isDeepStrictEqual([source.auth, secrets], [before.source.auth, before.secrets])
  if (isSame) return { source: { ...source, now: before.source.now }, secrets, verdict: before.verdict }
  // The sender signed for when it began.
  const found = { source: { ...source, now: before.source.now }, secrets }
  return { ...found, verdict: await checkBody(checkBy(found, incoming), saved, secrets.length) }
}

function verifiedOf({ source, secrets }: Found, { method, query, headers }: Incoming, body: Buffer): Verified {
  return {
    source,
    method,
    query: storable(query),
    headers: withoutCredentials(headers, { ...source, secrets }),
    body,
    receivedAt: source.now,
    attempts: attemptOf(headers['x-slack-retry-num']),
  }
}

/** Slack counts its retries from 1 on; nobody else says which try it is. */
function attemptOf(retries: string | undefined): number {
  return /^\d{1,4}$/.test(retries ?? '') ? Number(retries) + 1 : 1
}

interface Refused extends Found {
  incoming: Incoming
  saved: Buffer
  bytes: number
  reason: string
}

/** Records it, so that the people who set the source up find out why; the sender is not told which check failed. */
async function refused(
  deps: ReceiveDeps,
  { source, secrets, incoming, saved, bytes, reason }: Refused,
): Promise<Fault> {
  if (!deps.unverified.take(networkOf(incoming.address))) return tooManyUnverified()
  const keeping = deps.countUnverified(source.id, Math.min(bytes, UNVERIFIED_BYTES))
  if (keeping.what === 'nothing') return new Fault('UNVERIFIED')
  if (keeping.what === 'count') {
    await writeCount(deps, verifiedOf({ source, secrets }, incoming, NO_BYTES), keeping)
    return new Fault('UNVERIFIED')
  }
  const isForMany = keeping.what === 'head' && bytes > CUT_BYTES
  const isCut = isForMany || bytes > UNVERIFIED_BYTES
  const { body, ...rest } = verifiedOf({ source, secrets }, incoming, isCut ? saved.subarray(0, CUT_BYTES) : saved)
  await deps.deliveries.add({
    ...rowOfRefused(rest, body),
    payloadBytes: bytes,
    isCut,
    whole: { outcome: 'unverified', reason: isForMany ? `${reason} ${CUT_REASON}` : reason },
    decided: [],
    starts: [],
  })
  return new Fault('UNVERIFIED')
}

const NO_BYTES = Buffer.alloc(0)

/** A row for many, without what any of them had. */
async function writeCount(deps: ReceiveDeps, { body, ...rest }: Verified, count: CountRow): Promise<void> {
  if (!count.isFirst) return setReason(deps.db, rest.source, count)
  await deps.deliveries.add({
    ...rowOfRefused({ ...rest, query: '', headers: {}, attempts: 1 }, body),
    id: count.id,
    isCut: true,
    whole: { outcome: 'unverified', reason: count.reason },
    decided: [],
    starts: [],
  })
}

function rowOfRefused({ source, headers, ...rest }: Omit<Verified, 'body'>, payload: Buffer) {
  return {
    ...sourceFields(source),
    id: newId('dlv'),
    receivedAt: source.now,
    event: null,
    replayOf: null,
    attempts: rest.attempts,
    method: rest.method,
    query: rest.query,
    headers: JSON.stringify(headers),
    contentType: headers['content-type'] ?? null,
    payload,
    payloadKey: null,
    payloadBytes: payload.length,
    isCut: false,
  }
}

function tooManyUnverified(): Fault {
  const message = 'Too many deliveries from this address could not be verified; try again in a minute.'
  return new Fault('RATE_LIMITED', { scope: 'address', windowMs: MINUTE_MS, retryAfterMs: MINUTE_MS }, message)
}

async function assertRate(deps: ReceiveDeps, verified: Verified): Promise<void> {
  const { kind, id, orgId, name } = verified.source
  const { refusal } = await deps.deliveryLimits.take({ kind, id, orgId, org: name })
  if (refusal) await noteTooMany(deps, verified, refusal)
}

/** Whoever sends for an org may have others send from the same address: GitHub has few. */
async function holdForOrg(deps: ReceiveDeps, verified: Verified, { known }: Incoming): Promise<void> {
  try {
    known.countFor(verified.source.orgId)
  } catch (error) {
    await noteTooMany(deps, verified, error)
  }
}

/** The first that is too many in a minute is kept: it can be replayed, and shows that there were more. */
async function noteTooMany(deps: ReceiveDeps, verified: Verified, error: unknown): Promise<never> {
  // By address it is limited that was not verified after all.
  const isOneTooMany = error instanceof Fault && error.code === 'RATE_LIMITED' && error.detail?.['scope'] !== 'address'
  if (isOneTooMany && deps.tooManyNoted.take(verified.source.id)) {
    const reason = `${error.message} More of this minute are not recorded.`
    await note(deps, verified, { outcome: 'rate_limited', reason })
  }
  throw error
}

async function receiptOf(
  deps: Pick<ReceiveDeps, 'runReads' | 'targets'>,
  { orgId }: InboundSource,
  { id, committed }: Pick<Taken, 'id' | 'committed'>,
): Promise<DeliveryReceipt> {
  const { outcome, reason, matches } = committed
  const runs = await Promise.all(matches.map((match) => shownRun(deps, orgId, match)))
  return { delivery: { id, outcome, reason }, runs: runs.filter((run) => run !== undefined) }
}

async function shownRun(
  deps: Pick<ReceiveDeps, 'runReads' | 'targets'>,
  orgId: OrgId,
  { workflowId, outcome, reason, runId }: Committed['matches'][number],
): Promise<DeliveryReceipt['runs'][number] | undefined> {
  if (runId === null) return undefined
  // A new one stands as it was written; its workflow was looked up for it a moment ago.
  const target = outcome === 'triggered' && reason === null ? await deps.targets.resolve(orgId, workflowId) : undefined
  if (target) return { id: runId, workflow: target.version.slug, status: 'queued' }
  const run = await deps.runReads.add({ orgId, id: runId })
  return run && { id: run.id, workflow: run.workflow.slug, status: run.status }
}
