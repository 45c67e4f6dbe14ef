import http from 'node:http'
import https from 'node:https'

/** Node's own agent for this kind of address. */
function globalAgent(url: string): http.Agent {
  return url.startsWith('https') ? https.globalAgent : http.globalAgent
}

interface Proxied {
  proxyEnv?: NodeJS.ProcessEnv | undefined
}

/** What has to be said to an agent of our own so that it heeds HTTPS_PROXY and its like, as Node does with NODE_USE_ENV_PROXY=1. */
export function proxyOptions(url: string): Proxied {
  // The types do not know it yet.
  const { proxyEnv } = (globalAgent(url) as unknown as { options: Proxied }).options
  return proxyEnv === undefined ? {} : { proxyEnv }
}

/** For who would connect without any agent, as `ws` does: with a proxy Node's own one is needed, which knows the way through. */
export function proxyAgent(url: string): http.Agent | undefined {
  return proxyOptions(url).proxyEnv === undefined ? undefined : globalAgent(url)
}
