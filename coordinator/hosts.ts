import type { Config } from './config.ts'

/** Who may be asked for, and from whose pages. */
export interface Hosts {
  /** Whether the name in the header `Host` is one of ours: else a stranger's name was made to point at us. */
  isOurs(host: string | undefined): boolean
  /** Whether the page in the header `Origin` may call us. Programs send none. */
  mayCall(origin: string | undefined): boolean
}

const LOOPBACK = ['localhost', '127.0.0.1', '[::1]']
/** Addresses that stand for all of the machine. */
const EVERYWHERE = ['0.0.0.0', '::']

export type HostRules = Pick<Config, 'host' | 'baseUrl' | 'mcpHosts' | 'mcpOrigins'>

export function createHosts(config: HostRules): Hosts {
  const { host, baseUrl, mcpHosts, mcpOrigins } = config
  const base = baseUrl === undefined ? [] : [new URL(baseUrl).hostname]
  const names = new Set([...LOOPBACK, host.includes(':') ? `[${host}]` : host, ...base, ...mcpHosts])
  const isEverywhere = EVERYWHERE.includes(host)
  // A page can have a name of its own point at us, but not a number: by number nobody comes who was not sent here.
  const isOurName = (name: string) => names.has(name) || (isEverywhere && isAddress(name))
  const nameOf = (url: string) => (URL.canParse(url) ? new URL(url).hostname : '')
  // Pages of apps have addresses such as `app://localhost`, all of them alike.
  const isPage = (origin: string) => /^https?:/.test(origin)
  return {
    isOurs: (given) => given !== undefined && isOurName(nameOf(`http://${given}`)),
    mayCall: (origin) =>
      origin === undefined || mcpOrigins.includes(origin) || (isPage(origin) && names.has(nameOf(origin))),
  }
}

/** Of IPv4 or, in brackets, IPv6. */
function isAddress(name: string): boolean {
  return name.startsWith('[') || /^\d+\.\d+\.\d+\.\d+$/.test(name)
}
