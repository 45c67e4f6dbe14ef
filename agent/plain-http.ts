import { isReadable } from '@windlass/shared/loopback.ts'
import type { AgentConfig } from './config.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'

/** Throws when tokens and secrets would travel in the clear and plain http is not allowed. */
export function assertPrivate({ url, allowHttp }: Pick<AgentConfig, 'url' | 'allowHttp'>): void {
  if (allowHttp || !isReadable(url)) return
  const why = `WINDLASS_URL: ${url} is plain http to another machine, on whose way tokens and secrets could be read.`
  const fix = 'Use its https address, or say --allow-http (WINDLASS_AGENT_ALLOW_HTTP=true) on a network that you trust.'
  throw new AgentRefusal(EXIT.config, `${why} ${fix}`)
}
