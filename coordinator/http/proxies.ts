import { BlockList, isIP } from 'node:net'

/** Where a request comes from: the other end of its connection, and what it says of who is behind it. */
interface From {
  readonly ip: string
  readonly headers: Readonly<Record<string, string | undefined>>
}

/** The proxies that are believed. What anybody else says of forwarding is what anybody may write. */
export interface Proxies {
  /** Address of the client: the nearest one that is not a trusted proxy's. */
  addressOf(from: From): string
  /** The address under which the client reached us. */
  baseOf(from: From): string
}

/** `trusted`: addresses and networks, as WINDLASS_TRUSTED_PROXIES has them. */
export function createProxies(trusted: readonly string[]): Proxies {
  const list = new BlockList()
  for (const each of trusted) {
    const [address = '', prefix] = each.split('/')
    if (prefix === undefined) list.addAddress(address, familyOf(address))
    else list.addSubnet(address, Number(prefix), familyOf(address))
  }
  const isTrusted = (address: string) => trusted.length > 0 && list.check(address, familyOf(address))

  return {
    addressOf({ ip, headers }) {
      const hops = isTrusted(ip) ? (headers['x-forwarded-for'] ?? '').split(',') : []
      let client = ip
      // Each proxy adds whom it sees at the end: what stands before the first stranger may be made up.
      for (const hop of hops.toReversed()) {
        const address = withoutPort(hop.trim())
        if (isIP(address) === 0) break
        client = address
        if (!isTrusted(address)) break
      }
      return client
    },
    baseOf({ ip, headers }) {
      const proto = isTrusted(ip) ? lastOf(headers['x-forwarded-proto']) : undefined
      const host = isTrusted(ip) ? lastOf(headers['x-forwarded-host']) : undefined
      return `${proto === 'https' ? 'https' : 'http'}://${host ?? headers['host'] ?? 'localhost'}`
    },
  }
}

const familyOf = (address: string) => (isIP(address) === 6 ? 'ipv6' : 'ipv4')

/** Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]+)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop
}

/** The nearest proxy's word. */
function lastOf(list: string | undefined): string | undefined {
  return list?.split(',').at(-1)?.trim().toLowerCase() || undefined
}
