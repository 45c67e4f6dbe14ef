import { once } from 'node:events'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { WebSocket } from 'ws'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import {
  type AgentFrame,
  type CoordinatorFrame,
  type Entry,
  type Offer,
  type Placement,
  PROTOCOL,
} from '@windlass/shared/wire/agent.ts'

/** An agent that speaks the protocol and executes nothing: what is left is the coordinator's own cost. */
export interface SimulatedAgent {
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
  /** Called with every run that has been accepted. By default it starts and returns at once. */
  onRun?: (offer: Offer, agent: SimulatedAgent) => void
  onFrame?: (frame: CoordinatorFrame) => void
}

const VERSION = 'simulated'

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
  const bearer = () =>
    new SignJWT({})
      .setProtectedHeader({ alg: 'EdDSA', kid: registered.runner })
      .setSubject(registered.runner)
      .setAudience('windlass-agent')
      .setIssuedAt()
      .setExpirationTime('60 s')
      .sign(privateKey)

  const socket = await connect(`${options.url.replace('http', 'ws')}/runner/v1/socket`, await bearer(), options.slots)
  let kept = { token: await bearer(), at: performance.now() }
  const stopping = new AbortController()
  const offered = new Map<string, Offer>()
  const holds = new Map<string, Placement>()
  let free = options.slots
  let taken = 0
  let wakePoll = () => {}
  const agent: SimulatedAgent = {
    taken: () => taken,
    send: (frame) => socket.send(JSON.stringify(frame)),
    release: forget,
    close() {
      stopping.abort()
      wakePoll()
      socket.close()
    },
  }

  socket.on('close', () => {
    if (!stopping.signal.aborted) throw new Error('the coordinator closed the socket of a simulated agent')
  })
  socket.on('message', (data: Buffer) => {
    const frame = JSON.parse(data.toString()) as CoordinatorFrame
    if (frame.t === 'accepted') {
      for (const [run] of frame.runs) begin(run)
      for (const [run] of frame.no) forget(run)
    }
    if (frame.t === 'ack') for (const ack of frame.acks) if (ack.seq >= 2 && !options.onRun) forget(ack.run)
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

  const heart = setInterval(
    () => agent.send({ t: 'heartbeat', n: 1, holds: [...holds.values()] }),
    registered.settings.heartbeatMs,
  )
  stopping.signal.addEventListener('abort', () => clearInterval(heart))

  void (async () => {
    while (!stopping.signal.aborted) {
      if (free === 0) {
        await new Promise<void>((resolve) => (wakePoll = resolve))
        continue
      }
      const { offers } = await callOp(
        { url: options.url, apiKey: await cachedBearer() },
        ops.runnerSurface.claims,
        { slots: free },
        { signal: stopping.signal },
      ).catch((error: unknown) => {
        if (stopping.signal.aborted) return { offers: [] }
        throw error
      })
      if (offers.length === 0) continue
      for (const offer of offers) {
        offered.set(offer.run, offer)
        holds.set(offer.run, [offer.run, offer.epoch])
      }
      free -= offers.length
      agent.send({ t: 'accept', runs: offers.map((offer): Placement => [offer.run, offer.epoch]) })
    }
  })()

  async function cachedBearer() {
    if (performance.now() - kept.at > 30_000) kept = { token: await bearer(), at: performance.now() }
    return kept.token
  }
  return agent
}

const CONNECT_TRIES = 5
const WELCOME_MS = 5000

/** A socket that has been welcomed. Like a real agent it tries again when it is cut off before. */
async function connect(url: string, token: string, slots: number): Promise<WebSocket> {
  for (let tries = 1; ; tries++) {
    const socket = new WebSocket(url, { headers: { authorization: `Bearer ${token}` } })
    socket.on('error', () => {
      // Followed by `close`, which is what is waited for.
    })
    socket.once('open', () =>
      socket.send(JSON.stringify({ t: 'hello', protocol: PROTOCOL, version: VERSION, slots, holds: [] })),
    )
    const signal = AbortSignal.timeout(WELCOME_MS)
    const isWelcome = await Promise.race([
      once(socket, 'message', { signal }).then(() => true),
      once(socket, 'close', { signal }).then(() => false),
    ])
    if (isWelcome) return socket
    if (tries === CONNECT_TRIES) throw new Error(`a simulated agent was cut off ${tries} times before it was welcomed`)
  }
}
