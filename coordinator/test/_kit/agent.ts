/** An agent that speaks the protocol and does only what a test tells it to. */
import { offersOf } from '@windlass/shared/wire/offers.ts'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { type CryptoKey, exportJWK, generateKeyPair, SignJWT } from 'jose'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { within } from '@windlass/shared/time.ts'
import {
  type AgentFrame,
  type CoordinatorFrame,
  type Entry,
  type Instance,
  type Offer,
  type Placement,
  PROTOCOL_NAME,
} from '@windlass/shared/wire/agent.ts'
import { messagesOf } from '@windlass/shared/wire/parts.ts'
import type { TestCoordinator } from './coordinator.ts'

/** Longer than anything here takes, shorter than a test file may. */
const PATIENCE_MS = 60_000
const VERSION = 'test'

export interface TestAgent {
  id: RunnerId
  /** A token as agents sign them, or one that differs in what is given. */
  token(unlike?: TokenAsk): Promise<string>
  /** Asks for work: all that is there, or nothing after `waitMs`. */
  poll(slots?: number, waitMs?: number, signal?: AbortSignal): Promise<Offer[]>
  /** A socket that has said hello and been welcomed. */
  connect(holds?: Placement[], more?: Partial<Hello>): Promise<Link>
  /** The same agent with another key, which is not registered yet. */
  withKey(privateKey: CryptoKey): TestAgent
  /** A socket that has said nothing yet. */
  dial(): Promise<Link>
  /** The same agent, seen through another coordinator. */
  at(c: Pick<TestCoordinator, 'url'>): TestAgent
  /** Closes all its sockets, those of other keys and at other coordinators too. */
  close(): void
}

export interface TokenAsk {
  kid?: string
  sub?: string
  aud?: string
  expiresIn?: string
  issuedAt?: number
  key?: CryptoKey
}

export interface AgentAsk {
  name?: string
  slots?: number
  pool?: string
  labels?: string[]
}

export async function anAgent(c: TestCoordinator, ask: AgentAsk = {}): Promise<TestAgent> {
  const { registrationToken } = await c.call(ops.pools.createToken, { pool: ask.pool ?? c.poolId })
  const { privateKey, x } = await keyPair()
  const registered = await callOp(
    { url: c.url },
    ops.runnerSurface.register,
    registration(registrationToken.token, x, ask),
  )
  const agent = agentOf(c.url, registered.runner, privateKey)
  c.onStop(() => agent.close())
  return agent
}

export async function keyPair(): Promise<{ privateKey: CryptoKey; x: string }> {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
  return { privateKey, x: (await exportJWK(publicKey)).x! }
}

/** What an agent sends to join a pool. */
export function registration(token: string, x: string, { name = 'agent', slots = 4, labels = [] }: AgentAsk = {}) {
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x } as const
  return { token, name, publicKey, labels, slots, version: VERSION, platform: process.platform }
}

function agentOf(url: string, id: RunnerId, privateKey: CryptoKey, links: Link[] = []): TestAgent {
  const token = ({
    kid = id,
    sub = id,
    aud = 'windlass-agent',
    expiresIn = '60 s',
    issuedAt,
    key = privateKey,
  }: TokenAsk = {}) =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'EdDSA', kid })
      .setSubject(sub)
      .setAudience(aud)
      .setIssuedAt(issuedAt)
      .setExpirationTime(expiresIn)
      .sign(key)
  const dial = async () => {
    const link = await openLink(url, await token())
    links.push(link)
    return link
  }
  return {
    id,
    token,
    dial,
    async poll(slots = 1, waitMs = PATIENT_MS, signal) {
      const row = ops.runnerSurface.claims
      return offersOf(await callOp({ url, apiKey: await token() }, row, { slots, waitMs }, { signal }))
    },
    async connect(holds = [], more = {}) {
      const link = await dial()
      link.send(aHello({ holds, ...more }))
      await link.next('welcome')
      return link
    },
    withKey: (other) => agentOf(url, id, other, links),
    at: (c) => agentOf(c.url, id, privateKey, links),
    close() {
      for (const link of links) link.close()
    },
  }
}

type Hello = Extract<AgentFrame, { t: 'hello' }>

/** As an agent of today says it, without anything about itself. */
export function aHello(more: Partial<Hello> = {}): Hello {
  return { t: 'hello', protocol: PROTOCOL_NAME, version: VERSION, slots: 4, holds: [], ...more }
}

/** A start of an agent, on a host of its own unless one is given. */
export function anInstance({ previous = [], ...more }: Partial<Instance> = {}): Instance {
  return { id: randomUUID(), previous, host: randomUUID(), boot: 'this boot', ...more }
}

export const placementOf = (offer: Pick<Offer, 'run' | 'epoch'>): Placement => [offer.run, offer.epoch]

type Frame<T extends CoordinatorFrame['t']> = Extract<CoordinatorFrame, { t: T }>
/** What the coordinator says to entries of one placement. */
export type Verdict = { kind: 'ack' | 'resume'; seq: number } | { kind: 'stale' }

export interface Link {
  send(frame: AgentFrame): void
  /** In parts when it is long. */
  sendText(text: string): void
  /** The next frame of this kind that nobody has asked for yet. */
  next<T extends CoordinatorFrame['t']>(t: T): Promise<Frame<T>>
  /** All that have come so far and that nobody has asked for. */
  unread(): CoordinatorFrame[]
  /** Takes offers. Answers what the coordinator said. */
  accept(...offers: Offer[]): Promise<Frame<'accepted'>>
  /** Sends entries from number `first` on, and waits for what the coordinator says to them. */
  report(offer: Pick<Offer, 'run' | 'epoch'>, first: number, ...entries: Entry[]): Promise<Verdict>
  /** Waits for the next word on this placement. */
  verdict(offer: Pick<Offer, 'run' | 'epoch'>): Promise<Verdict>
  heartbeat(n: number, ...holds: Placement[]): Promise<Frame<'beat'>>
  close(): void
  /** Waits until the coordinator has closed it, and tells how. */
  closed(): Promise<{ code: number; reason: string }>
}

async function openLink(url: string, token: string): Promise<Link> {
  // Node's own client takes headers, which the type of the browsers' does not know.
  const options = { headers: { authorization: `Bearer ${token}` } }
  const socket = new WebSocket(`${url.replace('http', 'ws')}/runner/v1/socket`, options)
  const frames: CoordinatorFrame[] = []
  const verdicts = new Map<string, Verdict[]>()
  let woken = Promise.withResolvers<void>()
  const wake = () => {
    woken.resolve()
    woken = Promise.withResolvers<void>()
  }
  socket.addEventListener('message', ({ data }) => {
    const frame = JSON.parse(String(data)) as CoordinatorFrame
    const found = verdictsIn(frame)
    for (const [key, verdict] of found) verdicts.set(key, [...(verdicts.get(key) ?? []), verdict])
    if (found.length === 0) frames.push(frame)
    wake()
  })
  let farewell: { code: number; reason: string } | undefined
  const closed = new Promise<{ code: number; reason: string }>((resolve) =>
    socket.addEventListener('close', ({ code, reason }) => {
      resolve((farewell = { code, reason }))
      wake()
    }),
  )
  await within(PATIENCE_MS, opened(socket), 'the socket does not open')

  /** Looks whenever something comes; what is taken is gone for all others. */
  async function taken<T>(what: string, look: () => T | undefined): Promise<T> {
    const end = performance.now() + PATIENCE_MS
    for (;;) {
      const found = look()
      if (found !== undefined) return found
      if (farewell) throw new Error(`no ${what}: the socket was closed with ${farewell.code} ${farewell.reason}`)
      await within(Math.max(1, end - performance.now()), woken.promise, `no ${what}; unread: ${JSON.stringify(frames)}`)
    }
  }

  const link: Link = {
    send: (frame) => link.sendText(JSON.stringify(frame)),
    sendText(text) {
      const lane = text.startsWith('{"t":"entries"') ? 'entries' : 'others'
      for (const message of messagesOf(text, lane)) socket.send(message)
    },
    next: <T extends CoordinatorFrame['t']>(t: T) =>
      taken(t, () => {
        const at = frames.findIndex((frame) => frame.t === t)
        return at === -1 ? undefined : (frames.splice(at, 1)[0] as Frame<T>)
      }),
    unread: () => [...frames],
    accept(...offers) {
      link.send({ t: 'accept', runs: offers.map(placementOf) })
      return link.next('accepted')
    },
    report(offer, first, ...entries) {
      link.send({ t: 'entries', batches: [{ run: offer.run, epoch: offer.epoch, first, entries }] })
      return link.verdict(offer)
    },
    verdict: (offer) => taken('word on the entries', () => verdicts.get(placementOf(offer).join())?.shift()),
    heartbeat(n, ...holds) {
      link.send({ t: 'heartbeat', n, holds })
      return link.next('beat')
    },
    close: () => socket.close(),
    closed: () => within(PATIENCE_MS, closed, 'the socket stays open'),
  }
  return link
}

async function opened(socket: WebSocket): Promise<void> {
  const ac = new AbortController()
  const failed = once(socket, 'error', { signal: ac.signal }).then(() => {
    throw new Error('the coordinator refuses the socket')
  })
  try {
    await Promise.race([once(socket, 'open', { signal: ac.signal }), failed])
  } finally {
    failed.catch(() => {})
    ac.abort()
  }
}

function verdictsIn(frame: CoordinatorFrame): [key: string, verdict: Verdict][] {
  if (frame.t === 'ack') return frame.acks.map(({ run, epoch, seq }) => [`${run},${epoch}`, { kind: 'ack', seq }])
  if (frame.t === 'resume') return frame.runs.map(({ run, epoch, seq }) => [`${run},${epoch}`, { kind: 'resume', seq }])
  if (frame.t === 'stale') return frame.runs.map((placement) => [placement.join(), { kind: 'stale' }])
  return []
}

export const start = (at = Date.now()): Entry => ['start', at]
export const end = (ending: Ending, computeMs = 5): Entry => ['end', Date.now(), ending, computeMs]
export const returned = (value: unknown): Ending => ({ how: 'returned', outputText: JSON.stringify(value) })
export const line = (text: string): Entry => ['e', Date.now(), 'log.stdout', JSON.stringify({ text })]

export interface Held {
  agent: TestAgent
  link: Link
  offer: Offer
}

/** An agent that has accepted the next run of its pool and says that its program has begun. */
export async function aRunningAgent(c: TestCoordinator, ask: AgentAsk = {}): Promise<Held> {
  const agent = await anAgent(c, ask)
  const link = await agent.connect()
  return { agent, link, offer: await takeNext(agent, link) }
}

/**
 * As long as a poll may be. A claim leaves out a run that somebody has locked, and looks again after 5 s: a test that
 * waits for a run must outlast that.
 */
export const PATIENT_MS = 25_000

/** Polls for one run, accepts it and says that its program has begun. */
export async function takeNext(agent: TestAgent, link: Link): Promise<Offer> {
  const [offer] = await agent.poll(1, PATIENT_MS)
  if (!offer) throw new Error('there was no run to take')
  const { runs } = await link.accept(offer)
  if (runs.length !== 1) throw new Error(`the offer of ${offer.run} was not there any more`)
  await link.report(offer, 1, start())
  return offer
}
