/** Connections, and what providers send them. */
import { sign as signAsGithub } from '@octokit/webhooks-methods'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import type { TestCoordinator } from './coordinator.ts'
import { type Answer, send } from './inbound.ts'
import { aWorkflow, type TestWorkflow } from './workflow.ts'

export type CreateConnection = Omit<ArgsOf<typeof ops.connections.create>, 'org' | 'name'>

export interface MadeConnection {
  id: string
  name: string
  secret: string
  /** Where it is reached here: its own address is for the world. */
  url: string
}

let made = 0
/** A number that was not given before. */
export const nextNumber = (): number => ++made

export async function aConnection(c: TestCoordinator, session: string, of: CreateConnection): Promise<MadeConnection> {
  const name = `c-${nextNumber()}`
  const { connection, secret } = await c.call(ops.connections.create, { org: c.org, name, ...of }, { apiKey: session })
  return { id: connection.id, name, secret, url: `${c.url}/v1/inbound/${connection.id}` }
}

/** A workflow that wants events of a connection. */
export function aReceiverOf(
  c: TestCoordinator,
  connection: string,
  events: string[],
  more: object = {},
): Promise<TestWorkflow> {
  return aWorkflow(c, { descriptor: { connections: [{ connection, events, ...more }] } })
}

/** A push as GitHub sends it. */
export async function push(
  { url, secret }: Pick<MadeConnection, 'url' | 'secret'>,
  body: string,
  more: Record<string, string> = {},
): Promise<Answer> {
  const signature = await signAsGithub(secret, body)
  const headers = {
    'content-type': 'application/json',
    'x-hub-signature-256': signature,
    'x-github-event': 'push',
    'x-github-delivery': `d-${nextNumber()}`,
    ...more,
  }
  return send(url, { body, headers })
}
