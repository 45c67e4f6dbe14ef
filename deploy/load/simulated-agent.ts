import { offersOf } from '@windlass/shared/wire/offers.ts'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { WebSocket } from 'ws'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { pause } from '@windlass/shared/time.ts'
import {
  type AgentFrame,
  type CoordinatorFrame,
  type Entry,
  type Offer,
  type Placement,
  PROTOCOL_NAME,
} from '@windlass/shared/wire/agent.ts'

/** An agent that speaks the protocol and executes nothing: what is left is the coordinator's own cost. */
export interface SimulatedAgent {
  runner: string
  /** A token as agents sign them. */
  signToken(): Promise<string>
  /** Offers taken so far. */
  taken(): number
  send(frame: AgentFrame): void
  /** Its run has come to an end or was given up, and another may have its slot. */
  release(run: string): void
  close(): void
}

export interface SimulatedAgentOptions {
  url: string
  token: string
  slots: number
  /** Where it asks for work, when that is not `url`: its polls may fail there, and are repeated. */
  pollUrl?: string
  /** Called with every run that has been accepted. By default it starts and returns at once. */
  onRun?: (offer: Offer, agent: SimulatedAgent) => void
  onFrame?: (frame: CoordinatorFrame) => void
  /** Called with each offer as it comes, and with each frame that goes. */
  onOffer?: (offer: Offer) => void
  onSent?: () => void
  /** Called when the coordinator closes the socket, an error otherwise. Its polls may be refused as well then. */
  onClosed?: () => void
}

const VERSION = 'simulated'
const HASTY_MS = 20

export async function startSimulatedAgent(options: SimulatedAgentOptions): Promise<SimulatedAgent> {
  const { privateKey, publicKey } = await generateKeyPair('EdDSA', { crv: 'Ed25519', extractable: true })
  const jwk = await exportJWK(publicKey)
  const registered = await callOp({ url: options.url }, ops.runnerSurface.register, {
    token: options.token,
    name: VERSION,
    publicKey: { kty: 'OKP', crv: 'Ed25519', x: jwk.x! },
    slots: options.slots,
    version: VERSION,
    platform: process.platform,
  })
  const signToken = () =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'EdDSA', kid: registered.runner })
      .setSubject(registered.runner)
      .setAudience('windlass-agent')
      .setIssuedAt()
      .setExpirationTime('60 s')
      .sign(privateKey)

  const address = `${options.url.replace('http', 'ws')}/runner/v1/socket`
  const { socket, welcome } = await connect(address, await signToken(), options.slots)
  let { heartbeatMs, fenceMs } = welcome.settings
  let cached = { token: await signToken(), at: performance.now() }
  const stopping = new AbortController()
  const offered = new Map<string, Offer>()
  const holds = new Map<string, Placement>()
  let free = options.slots
  let taken = 0
  let wakePoll = () => {}
  const agent: SimulatedAgent = {
    runner: registered.runner,
    signToken,
    taken: () => taken,
    send(frame) {
      options.onSent?.()
      socket.send(JSON.stringify(frame))
    },
    release: forget,
    close() {
      stopping.abort()
      wakePoll()
      socket.close()
    },
  }

  socket.on('close', () => {
    if (stopping.signal.aborted) return
    if (!options.onClosed) throw new Error('the coordinator closed the socket of a simulated agent')
    stopping.abort()
    options.onClosed()
  })
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as CoordinatorFrame
    if (frame.t === 'accepted') {
      for (const [run] of frame.runs) begin(run)
      for (const [run] of frame.no) forget(run)
    }
    if (frame.t === 'ack') for (const ack of frame.acks) if (ack.seq >= 2 && !options.onRun) forget(ack.run)
    if (frame.t === 'beat' && frame.settings) ({ heartbeatMs, fenceMs } = frame.settings)
    options.onFrame?.(frame)
  })

  let outgoing: { run: string; epoch: number; first: number; entries: Entry[] }[] = []
  function begin(run: string) {
    const offer = offered.get(run)
    if (!offer) return
    taken++
    if (options.onRun) return options.onRun(offer, agent)
    const at = Date.now()
    const entries: Entry[] = [
      ['start', at],
      ['end', at, { how: 'returned', outputText: 'null' }, 0],
    ]
    if (outgoing.push({ run, epoch: offer.epoch, first: 1, entries }) > 1) return
    setImmediate(() => {
      const batches = outgoing
      outgoing = []
      agent.send({ t: 'entries', batches })
    })
  }
  function forget(run: string) {
    if (!offered.delete(run)) return
    holds.delete(run)
    free++
    wakePoll()
  }

  /** As often as the coordinator wants it; not all agents at the same moment. */
  void (async () => {
    for (let n = 1; !stopping.signal.aborted; n++) {
      await pause(heartbeatMs * (0.8 + 0.4 * Math.random()), stopping.signal)
      if (!stopping.signal.aborted) agent.send({ t: 'heartbeat', n, holds: [...holds.values()], fenceMs })
    }
  })()

  void (async () => {
    while (!stopping.signal.aborted) {
      if (free === 0) {
        await new Promise<void>((resolve) => (wakePoll = resolve))
        continue
      }
      const askedAt = performance.now()
      const offers = await callOp(
        { url: options.pollUrl ?? options.url, apiKey: await cachedToken() },
        ops.runnerSurface.claims,
        { slots: free },
        { signal: stopping.signal },
      ).then(offersOf, (error: unknown) => {
        if (stopping.signal.aborted || options.pollUrl !== undefined || options.onClosed) return []
        throw error
      })
      if (offers.length === 0) {
        // Whoever gets no work is answered late, or not to ask again at once.
        if (performance.now() - askedAt < HASTY_MS) await pause(HASTY_MS, stopping.signal)
        continue
      }
      for (const offer of offers) {
        options.onOffer?.(offer)
        offered.set(offer.run, offer)
        holds.set(offer.run, [offer.run, offer.epoch])
      }
      free -= offers.length
      agent.send({ t: 'accept', runs: offers.map((offer): Placement => [offer.run, offer.epoch]) })
    }
  })()

  async function cachedToken() {
    if (performance.now() - cached.at > 30_000) cached = { token: await signToken(), at: performance.now() }
    return cached.token
  }
  return agent
}

function helloOf(slots: number): AgentFrame {
  const id = randomUUID()
  const instance = { id, previous: [], host: id, boot: id }
  const facts = { labels: [], platform: process.platform, capabilities: [], isolation: null, unready: [] }
  return { t: 'hello', protocol: PROTOCOL_NAME, version: VERSION, slots, holds: [], instance, facts }
}

const CONNECT_TRIES = 5
const WELCOME_MS = 5000

type Welcome = Extract<CoordinatorFrame, { t: 'welcome' }>

/** A socket that has been welcomed. Like a real agent it tries again when it is cut off before. */
async function connect(url: string, token: string, slots: number): Promise<{ socket: WebSocket; welcome: Welcome }> {
  for (let tries = 1; ; tries++) {
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
    socket.on('error', () => {
      // Followed by `close`, which is what is waited for.
    })
    socket.once('open', () => socket.send(JSON.stringify(helloOf(slots))))
    const signal = AbortSignal.timeout(WELCOME_MS)
    const welcome = await Promise.race([
      once(socket, 'message', { signal }).then(([data]) => JSON.parse(String(data)) as Welcome),
      once(socket, 'close', { signal }).then(() => undefined),
    ])
    if (welcome) return { socket, welcome }
    if (tries === CONNECT_TRIES) throw new Error(`a simulated agent was cut off ${tries} times before it was welcomed`)
  }
}
