import http from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Duplex } from 'node:stream'
import { type WebSocket, WebSocketServer } from 'ws'
import { newId } from '@windlass/shared/ids.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { AgentFrame, AgentSettings, CoordinatorFrame, Offer, Placement } from '@windlass/shared/wire/agent.ts'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import type { Packed } from './bundle.ts'
import { FakeRunners } from './fake-runners.ts'
import { answer, readJson, refuse, refuseUpgrade, unlessGivenUp } from './http.ts'
import { onFrames } from './joined-frames.ts'
import { inAnswer } from './offers-in-answer.ts'
import { endingOf } from './fake-placement.ts'
import type { FakePlacement } from './fake-placement.ts'

export { endingOf, linesOf } from './fake-placement.ts'
export type { FakePlacement } from './fake-placement.ts'

export const REGISTRATION_TOKEN = 'wlr_good'
// Tests count heartbeats, which come often, and bring a fence of their own: a busy agent needs 5 s to connect again.
const SETTINGS: AgentSettings = { heartbeatMs: 50, fenceMs: 60_000, cancelGraceMs: 1_000, pollMs: 2_000 }

/** The coordinator's side of the wire on real sockets: it keeps everything in memory and does as a test tells it. */
export class FakeCoordinator {
  readonly settings: AgentSettings
  readonly frames: AgentFrame[] = []
  readonly placements = new Map<string, FakePlacement>()
  readonly bundles = new Map<string, Packed>()
  readonly sockets = new Set<WebSocket>()
  url = ''
  registrations = 0
  bundleFetches = 0
  /** Frames of these kinds are heard and not answered. */
  readonly mute = new Set<AgentFrame['t'] | 'ack'>()
  beforeWelcome: CoordinatorFrame[] = []
  /** Runs to whose `accept` it says no. */
  readonly refused = new Set<string>()
  /** Instead of the honest bytes of a bundle. */
  onBundle: ((response: http.ServerResponse, digest: string) => boolean) | undefined
  /** Answers a request for a journal. */
  journal: ((response: http.ServerResponse) => void) | undefined
  journalFetches = 0
  /** What runs read as their secrets, or an answer of another kind. */
  secrets: Record<string, string> | ((response: http.ServerResponse) => void) = {}
  /** The run and the token of each time that somebody did. */
  readonly secretReads: { run: string; token: string | undefined }[] = []
  /** Who may speak as an agent, and by which clock. */
  readonly runners = new FakeRunners()
  /** Said with each welcome and each answer to a heartbeat. */
  says: Pick<Extract<CoordinatorFrame, { t: 'beat' }>, 'settings' | 'intake'> = {}
  /** For how many slots each poll asked. */
  readonly asked: number[] = []
  /** Polls that were cut off before they were answered: what is on its way to one is lost. */
  cutPolls = 0
  /** It ends no poll that it is asked to end, as if another one held it. */
  isElsewhere = false
  #queue: Offer[] = []
  #polls = new Set<() => void>()
  #server = http.createServer((request, response) => {
    void unlessGivenUp(request, this.#serve(request, response)).finally(announce)
  })
  #wss = new WebSocketServer({ noServer: true, maxPayload: 64 * 1024 * 1024 })

  constructor(settings: Partial<AgentSettings> = {}) {
    this.settings = { ...SETTINGS, ...settings }
  }

  static async start(settings: Partial<AgentSettings> = {}): Promise<FakeCoordinator> {
    const fake = new FakeCoordinator(settings)
    fake.#server.on('upgrade', (request, socket, head) => {
      void fake.#upgrade(request, socket, head)
    })
    await new Promise<void>((resolve) => fake.#server.listen(0, '127.0.0.1', resolve))
    fake.url = `http://127.0.0.1:${(fake.#server.address() as AddressInfo).port}`
    return fake
  }

  /** Queues a run; the agent gets it with its next poll. */
  offer(bundle: Packed, more: Partial<Offer> = {}): FakePlacement {
    this.bundles.set(bundle.digest, bundle)
    const offer: Offer = {
      run: newId('run'),
      attempt: 1,
      epoch: 1,
      org: 'default',
      workflow: { slug: 'test', version: 1 },
      environment: null,
      inputText: 'null',
      bundle: { digest: bundle.digest, bytes: bundle.bytes },
      process: 'fresh',
      slots: 1,
      reuseKey: bundle.digest,
      timeoutMs: 60_000,
      graceMs: 500,
      outputBytes: 1024 * 1024,
      eventDataBytes: 64 * 1024,
      replay: false,
      journal: { entries: 0, text: '[]' },
      variables: {},
      secrets: false,
      token: 'run-token',
      ...more,
    }
    const placement: FakePlacement = { offer, state: 'offered', entries: [], doubles: 0 }
    this.placements.set(`${offer.run}/${offer.epoch}`, placement)
    this.#queue.push(offer)
    for (const wake of this.#polls) wake()
    return placement
  }

  send(frame: CoordinatorFrame): void {
    for (const ws of this.sockets) ws.send(JSON.stringify(frame))
  }

  /** Runs that nobody has asked for yet. */
  waiting(): number {
    return this.#queue.length
  }

  get unauthenticated(): number {
    return this.runners.unauthenticated
  }

  /** Polls that wait for an answer. */
  polling(): number {
    return this.#polls.size
  }

  /** Cuts every connection without a word. */
  cut(): void {
    for (const ws of this.sockets) ws.terminate()
  }

  ackAll(): void {
    const acks = [...this.placements.values()].map(({ offer, entries }) => ({
      run: offer.run,
      epoch: offer.epoch,
      seq: entries.length,
    }))
    this.send({ t: 'ack', acks })
  }

  async ending(placement: FakePlacement): Promise<Ending> {
    return until(`the end of ${placement.offer.run}`, () => endingOf(placement))
  }

  heard<T extends AgentFrame['t']>(t: T): Extract<AgentFrame, { t: T }>[] {
    return this.frames.filter((frame): frame is Extract<AgentFrame, { t: T }> => frame.t === t)
  }

  async close(): Promise<void> {
    this.cut()
    for (const wake of this.#polls) wake()
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  async #upgrade(request: http.IncomingMessage, socket: Duplex, head: Buffer): Promise<void> {
    if (await this.runners.isRunner(request)) this.#wss.handleUpgrade(request, socket, head, (ws) => this.#greet(ws))
    else refuseUpgrade(socket, { date: this.runners.date() })
  }

  async #serve(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '/', this.url)
    response.setHeader('date', this.runners.date())
    if (pathname === '/runner/v1/register') return this.#register(request, response)
    if (pathname.endsWith('/secrets')) return this.#secrets(pathname, request, response)
    if (!(await this.runners.isRunner(request))) return refuse(response, 401, 'UNAUTHENTICATED')
    if (pathname === '/runner/v1/identity') return this.runners.renewKey(request, response)
    if (pathname === '/runner/v1/claims') return this.#claims(request, response)
    if (pathname.startsWith('/runner/v1/journals/')) {
      this.journalFetches += 1
      if (this.journal) return this.journal(response)
      return refuse(response, 404, 'NOT_FOUND')
    }
    const digest = pathname.replace('/runner/v1/bundles/', '')
    this.bundleFetches += 1
    if (this.onBundle?.(response, digest)) return
    const found = this.bundles.get(digest)
    if (found) response.end(found.packed)
    else refuse(response, 404, 'NOT_FOUND')
  }

  #secrets(pathname: string, request: http.IncomingMessage, response: http.ServerResponse): void {
    const [, run = ''] = /^\/runner\/v1\/runs\/(.+)\/secrets$/.exec(pathname) ?? []
    this.secretReads.push({ run, token: request.headers.authorization?.replace('Bearer ', '') })
    if (typeof this.secrets === 'function') this.secrets(response)
    else answer(response, 200, { secrets: this.secrets })
  }

  async #register(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const body = await readJson(request)
    if (body.token !== REGISTRATION_TOKEN) return refuse(response, 401, 'UNAUTHENTICATED')
    const runner = newId('rnr')
    this.runners.add(runner, body.publicKey)
    this.registrations += 1
    answer(response, 201, { runner, org: 'default', pool: 'default', settings: this.settings })
  }

  async #claims(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { slots, waitMs } = await readJson(request)
    if (slots > 0) this.asked.push(slots)
    else if (!this.isElsewhere) for (const wake of this.#polls) wake()
    if (slots > 0 && this.#queue.length === 0) {
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, waitMs)
        const wake = () => {
          clearTimeout(timer)
          this.#polls.delete(wake)
          announce()
          resolve()
        }
        this.#polls.add(wake)
        announce()
        response.on('close', wake)
      })
    }
    if (response.destroyed) this.cutPolls += 1
    else answer(response, 200, inAnswer(this.#queue.splice(0, slots)))
  }

  #greet(ws: WebSocket): void {
    this.sockets.add(ws)
    ws.on('close', () => {
      this.sockets.delete(ws)
      announce()
    })
    ws.on('error', () => ws.terminate())
    onFrames(ws, (frame) => {
      this.frames.push(frame)
      for (const reply of this.#replies(frame)) ws.send(JSON.stringify(reply))
      announce()
    })
  }

  #replies(frame: AgentFrame): CoordinatorFrame[] {
    if (this.mute.has(frame.t)) return []
    if (frame.t === 'hello') return [...this.beforeWelcome, this.#welcome(frame.holds)]
    if (frame.t === 'accept') return [this.#accept(frame.runs)]
    if (frame.t === 'heartbeat') return [this.#beat(frame)]
    if (frame.t === 'renew')
      return [{ t: 'tokens', runs: frame.runs.map(([run, epoch]) => ({ run, epoch, token: 'renewed' })) }]
    if (frame.t === 'leave' || frame.t === 'decline') return []
    return this.#keep(frame)
  }

  #welcome(holds: Placement[]): CoordinatorFrame {
    const known = holds
      .map(([run, epoch]) => this.placements.get(`${run}/${epoch}`))
      .filter((placement) => placement?.state === 'accepted')
    const resume = known.map((each) => ({ run: each!.offer.run, epoch: each!.offer.epoch, seq: each!.entries.length }))
    const orders = { ...this.says, resume, stale: this.#staleIn(holds), cancel: [] }
    return { t: 'welcome', cluster: 'fake', settings: this.settings, ...orders, now: this.runners.now() }
  }

  #beat({ n, holds }: Extract<AgentFrame, { t: 'heartbeat' }>): CoordinatorFrame {
    return { t: 'beat', n, ...this.says, stale: this.#staleIn(holds), cancel: [], now: this.runners.now() }
  }

  #staleIn(holds: Placement[]): Placement[] {
    return holds.filter((placement) => this.#isStale(placement))
  }

  #accept(runs: Placement[]): CoordinatorFrame {
    const no = runs.filter(([run]) => this.refused.has(run))
    const yes = runs.filter(([run]) => !this.refused.has(run))
    for (const [run, epoch] of yes) this.placements.get(`${run}/${epoch}`)!.state = 'accepted'
    return { t: 'accepted', runs: yes, no }
  }

  #isStale([run, epoch]: Placement): boolean {
    const state = this.placements.get(`${run}/${epoch}`)?.state
    return state === undefined || state === 'stale'
  }

  #keep(frame: Extract<AgentFrame, { t: 'entries' }>): CoordinatorFrame[] {
    const replies: CoordinatorFrame[] = []
    const acks = []
    for (const { run, epoch, first, entries } of frame.batches) {
      const placement = this.placements.get(`${run}/${epoch}`)
      if (!placement || placement.state === 'stale') {
        replies.push({ t: 'stale', runs: [[run, epoch]] })
        continue
      }
      const have = placement.entries.length
      if (first > have + 1) replies.push({ t: 'resume', runs: [{ run, epoch, seq: have }] })
      else {
        placement.doubles += Math.min(entries.length, have + 1 - first)
        placement.entries.push(...entries.slice(have + 1 - first))
      }
      acks.push({ run, epoch, seq: placement.entries.length })
    }
    if (acks.length > 0 && !this.mute.has('ack')) replies.push({ t: 'ack', acks })
    return replies
  }
}
