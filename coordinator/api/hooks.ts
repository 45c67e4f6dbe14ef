import { Fault } from '@windlass/shared/errors.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { DeliveryReceipt } from '@windlass/shared/model/delivery.ts'
import type { Address } from '../inbound/address.ts'
import { receive, type Received } from '../inbound/receive.ts'
import { findSource } from '../inbound/sources.ts'
import type { SourceGate } from '../limits/source-gate.ts'
import { BytesAnswer, type Call, type HandlersFor } from './call.ts'

/** Slack takes an answer for lost that comes after 3 s. */
const SLACK_MS = 2500

type Settings = { config: { baseUrl: string | undefined } }
type ProbeNeeds = Needs<typeof findSource> & { sourceGate: SourceGate }

export function addressOf({ config }: Settings, call: { base: string }): Address {
  return { baseUrl: config.baseUrl, base: call.base }
}

export const hooks = (deps: Needs<typeof receive | typeof findSource> & Settings): HandlersFor<'hooks'> => ({
  receive: async (call) => answered(deps, call, call.input.hook),
  probe: async (call) => probed(deps, call, call.input.hook),
  receiveInbound: async (call) => answered(deps, call, call.input.connection),
  probeInbound: async (call) => probed(deps, call, call.input.connection),
})

async function answered(
  deps: Needs<typeof receive> & Settings,
  call: Call<unknown>,
  source: string,
): Promise<DeliveryReceipt | BytesAnswer> {
  const { raw } = call
  const query = raw.query ?? ''
  const url = `${call.base}${raw.path}${query && `?${query}`}`
  const { method, headers, known } = raw
  const incoming = { method, url, query, headers, known, address: call.address, gone: () => call.gone }
  const received = receive(deps, source, { ...incoming, read: (options) => raw.read(options) })
  // What is late for Slack goes on.
  raw.holdFor(received)
  return answerFor(await (isOfSlack(raw.headers) ? inTime(received) : received))
}

function answerFor({ source, receipt, handshake }: Received): DeliveryReceipt | BytesAnswer {
  const { outcome, reason, id } = receipt.delivery
  if (source.about.kind === 'slack') {
    // Anything in the body would be shown as a message, or taken for the answer of a dialog.
    const text = handshake?.challenge === undefined ? '' : JSON.stringify({ challenge: handshake.challenge })
    return new BytesAnswer(Buffer.from(text), text === '' ? 'text/plain' : 'application/json')
  }
  // Of a connection the provider is not at fault: it does not know what our workflows take.
  if (source.kind === 'webhook' && outcome === 'invalid_input')
    throw new Fault('VALIDATION_FAILED', { path: 'input', delivery: id }, reason ?? undefined)
  return receipt
}

const isOfSlack = (headers: Readonly<Record<string, string>>) => headers['x-slack-signature'] !== undefined

/** What is late may be committed all the same; sent again it is a repetition. */
async function inTime<T>(work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Fault('UNAVAILABLE', {}, 'This took too long; send it again.')), SLACK_MS)
  })
  try {
    return await Promise.race([work, late])
  } finally {
    clearTimeout(timer)
    // Once it is late nobody waits for it any more: when it fails, the sender comes again.
    work.catch(() => {})
  }
}

/** How senders of CloudEvents ask whether they may: a hook takes from anybody who has its secret. */
async function probed(deps: ProbeNeeds, call: Call<unknown>, id: string): Promise<BytesAnswer> {
  const asked = { id, address: call.address, gone: () => call.gone, what: 'source' } as const
  await deps.sourceGate.pass(asked, () => findSource(deps, id))
  const origin = call.header('webhook-request-origin')
  const headers = {
    allow: 'POST, OPTIONS',
    'webhook-allowed-rate': '*',
    ...(origin !== undefined && /^[\x20-\x7e]{1,500}$/.test(origin) && { 'webhook-allowed-origin': origin }),
  }
  return new BytesAnswer(Buffer.alloc(0), 'text/plain', { headers })
}
