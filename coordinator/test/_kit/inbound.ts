/** Webhooks and connections, and whoever delivers to them. */
import { createHmac } from 'node:crypto'
import { ops } from '@windlass/shared/ops/index.ts'
import type { DeliveryReceipt } from '@windlass/shared/model/delivery.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { TestCoordinator } from './coordinator.ts'

export interface Hook {
  url: string
  id: string
  secret: string
}

/** The webhook of a workflow, with a secret. */
export async function aHook(
  c: Pick<TestCoordinator, 'call' | 'org'>,
  session: string,
  workflow: string,
): Promise<Hook> {
  const { webhook, secret } = await c.call(ops.webhooks.rotate, { org: c.org, workflow }, { apiKey: session })
  return { url: webhook.url, id: webhook.id, secret }
}

/** As `X-Windlass-Signature`. */
export function signature(secret: string, body: string | Uint8Array, at = Date.now()): string {
  const t = Math.floor(at / 1000)
  return `t=${t},v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`
}

export interface Post {
  body?: string | Uint8Array
  headers?: Record<string, string>
  /** Left out: signed by the secret of the hook. */
  signature?: string | null
}

/** One delivery at the webhook of a workflow. */
export async function deliver({ url, secret }: Hook, post: Post = {}): Promise<Answer> {
  const { body = '{}', headers = {} } = post
  const signed = post.signature === undefined ? signature(secret, body) : post.signature
  return send(url, {
    body,
    headers: {
      'content-type': 'application/json',
      ...(signed !== null && { 'x-windlass-signature': signed }),
      ...headers,
    },
  })
}

export interface Answer {
  status: number
  text: string
  /** Of an answer with one. */
  receipt: DeliveryReceipt
  error: { code: string; message: string; detail?: Record<string, unknown> }
  headers: Headers
}

export async function send(url: string, init: { body: string | Uint8Array; headers: Record<string, string> }) {
  const response = await fetch(url, {
    method: 'POST',
    headers: init.headers,
    body: init.body,
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  const text = await response.text()
  const json = text.startsWith('{') ? (JSON.parse(text) as Record<string, unknown>) : {}
  return {
    status: response.status,
    text,
    receipt: json as unknown as DeliveryReceipt,
    error: json['error'] as Answer['error'],
    headers: response.headers,
  }
}
