import { createHash, timingSafeEqual } from 'node:crypto'
import { BlockList, isIPv6 } from 'node:net'
import { Fault } from '@windlass/shared/errors.ts'
import { isLoopbackHost } from '@windlass/shared/loopback.ts'
import type { Config } from '../config.ts'
import { createHosts, type HostRules } from '../hosts.ts'

const loopback = new BlockList()
loopback.addSubnet('127.0.0.0', 8, 'ipv4')
loopback.addAddress('::1', 'ipv6')
loopback.addSubnet('::ffff:127.0.0.0', 104, 'ipv6')

export interface Scraper {
  /** Address of the other end of the connection. */
  address: string
  header(name: string): string | undefined
}

/** A proxy on this machine connects from here too, and says so with one of these. */
const FORWARDED = ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via']

/** Settings that decide who may read the figures. */
type ScrapeRules = HostRules & Pick<Config, 'metricsToken' | 'trustedProxies'>

/**
 * Figures tell a stranger how busy an installation is. They are for those who send the token; and for this machine as
 * long as nobody else is served. Otherwise what connects from here may be a forwarder that says nothing of whom it
 * forwards: stunnel, a proxy for TCP, `kubectl port-forward`. Nor are they for a page in a browser of this machine: a
 * stranger's name that was made to point here stands in `Host`.
 */
export function assertMayScrape(scraper: Scraper, rules: ScrapeRules): void {
  const token = rules.metricsToken
  if (hasToken(scraper.header('authorization'), token) || (isAlone(rules) && isLocal(scraper, rules))) return
  const message =
    token === undefined
      ? 'Metrics are for this machine only, under a name such as `localhost`, while the coordinator serves nobody else. Set WINDLASS_METRICS_TOKEN on the coordinator and send it as `Authorization: Bearer <token>`.'
      : 'Send the value of WINDLASS_METRICS_TOKEN as `Authorization: Bearer <token>`.'
  throw new Fault('FORBIDDEN', undefined, message)
}

function isAlone({ host, baseUrl, trustedProxies }: ScrapeRules): boolean {
  return isLoopbackHost(host) && baseUrl === undefined && trustedProxies.length === 0
}

function isLocal(scraper: Scraper, rules: ScrapeRules): boolean {
  if (FORWARDED.some((name) => scraper.header(name) !== undefined)) return false
  if (!createHosts(rules).isOurs(scraper.header('host'))) return false
  const { address } = scraper
  return loopback.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')
}

function hasToken(authorization: string | undefined, token: string | undefined): boolean {
  const given = /^bearer +(\S+) *$/i.exec(authorization ?? '')?.[1]
  // Of hashes, as texts of different length cannot be compared in constant time.
  return given !== undefined && token !== undefined && timingSafeEqual(digest(given), digest(token))
}

function digest(text: string): Buffer {
  return createHash('sha256').update(text).digest()
}
