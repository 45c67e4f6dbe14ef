import type { ConnectionKind, Source } from '@windlass/shared/model/connection.ts'
import { headerOf, type Headers } from './headers.ts'

export interface About {
  kind: ConnectionKind | 'webhook'
  /** As the connection says it, where its kind does not. */
  event?: Source | null
  dedupe?: Source | null
  /** Header with the id, of a scheme that names one. */
  idHeader?: string | undefined
}

/** What happened, as the provider calls it. Null: it does not say. */
export function eventOf(about: About, headers: Headers, payload: unknown): string | null {
  switch (about.kind) {
    case 'github': {
      const name = headers['x-github-event']
      const action = textAt(payload, 'action')
      return name === undefined ? null : action === null ? name : `${name}.${action}`
    }
    case 'stripe':
      return textAt(payload, 'type')
    case 'standard-webhooks':
      return sourced(about.event, headers, payload) ?? textAt(payload, 'type')
    case 'slack': {
      const command = textAt(payload, 'command')
      if (command !== null) return `command:${command}`
      return textAt(payload, 'event.type') ?? textAt(payload, 'type')
    }
    default:
      return sourced(about.event, headers, payload)
  }
}

/** What a repetition of the same delivery has again. Null: there is no such thing. */
export function idOf(about: About, headers: Headers, payload: unknown): string | null {
  switch (about.kind) {
    case 'github':
      return headers['x-github-delivery'] ?? null
    case 'stripe':
      return textAt(payload, 'id')
    case 'slack':
      return textAt(payload, 'event_id')
    case 'standard-webhooks':
      return headers['webhook-id'] ?? headers['svix-id'] ?? null
    default: {
      const own = sourced(about.dedupe, headers, payload)
      if (own !== null) return own
      if (about.idHeader !== undefined) return headerOf(headers, about.idHeader) ?? null
      return about.kind === 'webhook' ? (headers['webhook-id'] ?? null) : null
    }
  }
}

/** A copy of a delivery may come under another id. The other kinds sign the id, or do not know copies at all. */
export const isIdOpen = ({ kind }: About): boolean => kind === 'webhook' || kind === 'hmac'

function sourced(source: Source | null | undefined, headers: Headers, payload: unknown): string | null {
  if (!source) return null
  return 'header' in source ? (headerOf(headers, source.header) ?? null) : textAt(payload, source.field)
}

function textAt(payload: unknown, path: string): string | null {
  let value = payload
  for (const name of path.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null
    value = (value as Record<string, unknown>)[name]
  }
  return typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : null
}
