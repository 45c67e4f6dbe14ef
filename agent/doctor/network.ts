import { lookup } from 'node:dns/promises'
import net from 'node:net'
import tls from 'node:tls'
import type { TLSSocket } from 'node:tls'
import type { AgentConfig } from '../config.ts'
import { isReadable } from '@windlass/shared/loopback.ts'
import { fail, messageOf, ok, warn } from './finding.ts'
import type { Answer, Question } from './finding.ts'
import { proxyFor } from './proxy.ts'

const DAY_MS = 86_400_000
const CERTIFICATE_DAYS = 14

type Trust = Pick<AgentConfig, 'url' | 'caFile' | 'allowHttp'>

/** From the name to a connection, in the order in which a connection is made. */
export function networkQuestions(config: Trust): Question[] {
  const url = new URL(config.url)
  const through = proxyFor(url)
  return [
    { check: 'proxy', ask: () => askProxy(url) },
    // Behind a proxy it is the proxy that looks the name up and connects.
    { check: 'dns', ask: () => (through ? ok(`the proxy looks up ${url.hostname}`) : askDns(url)) },
    { check: 'tcp', after: 'dns', ask: (signal) => askTcp(through ? new URL(through) : url, signal) },
    { check: 'tls', after: 'tcp', ask: (signal) => (through ? behindProxy(config) : askTls(config, signal)) },
  ]
}

const portOf = ({ port, protocol }: URL): number => Number(port) || (protocol === 'https:' ? 443 : 80)
const hostOf = ({ hostname }: URL): string => hostname.replace(/^\[|\]$/g, '')

function askProxy(url: URL): Answer {
  const env = proxyFor(url, { isHeeded: true })
  if (!env) return ok('none is set for this address; connections are made directly')
  const used = proxyFor(url)
  if (used) return ok(`connections go through ${nameOf(used)}`)
  return warn(
    `A proxy is set (${nameOf(env)}), and the agent does not use it: it connects directly.`,
    `set NODE_USE_ENV_PROXY=1 where the agent starts, beside the proxy (of a service: systemctl edit windlass-agent), or name ${url.hostname} in NO_PROXY if direct is right`,
  )
}

/** Without the password that proxies are given in their address. */
function nameOf(proxy: string): string {
  const { protocol, host } = URL.parse(proxy) ?? { protocol: '', host: 'an address that is none' }
  return `${protocol}//${host}`
}

async function askDns(url: URL): Promise<Answer> {
  const host = hostOf(url)
  if (net.isIP(host)) return ok(`${host} is an address already`)
  try {
    const found = await lookup(host, { all: true })
    return ok(`${host} is ${found.map(({ address }) => address).join(', ')}`)
  } catch (error) {
    return fail(
      `${host} cannot be looked up: ${messageOf(error)}.`,
      'check the spelling of WINDLASS_URL, and the name servers in /etc/resolv.conf',
    )
  }
}

async function askTcp(url: URL, signal: AbortSignal): Promise<Answer> {
  const [host, port] = [hostOf(url), portOf(url)]
  const startedAt = performance.now()
  const socket = net.connect({ host, port, signal })
  try {
    await opened(socket, 'connect')
    return ok(`${host} answers on port ${port}, within ${Math.ceil(performance.now() - startedAt)} ms`)
  } catch (error) {
    signal.throwIfAborted()
    return fail(
      `${host} does not answer on port ${port}: ${messageOf(error)}.`,
      'see that the coordinator runs there and that no firewall is in between; another port stands in WINDLASS_URL',
    )
  } finally {
    socket.destroy()
  }
}

function behindProxy(config: Trust): Answer {
  return config.url.startsWith('https:') ? ok('made through the proxy; see http below') : notUsed(config)
}

function notUsed({ url, allowHttp }: Trust): Answer {
  if (!isReadable(url)) return ok('not used, and not needed on this machine')
  const message = 'The address is http: what runs report, and their secrets, travel in the clear.'
  if (allowHttp) return warn(message, 'use https outside of a network that you trust')
  return fail(
    `${message} The agent does not start like this.`,
    'use the https address of the coordinator, or set WINDLASS_AGENT_ALLOW_HTTP=true on a network that you trust',
  )
}

async function askTls(config: Trust, signal: AbortSignal): Promise<Answer> {
  const url = new URL(config.url)
  const host = hostOf(url)
  if (url.protocol !== 'https:') return notUsed(config)
  const socket = tls.connect({ host, port: portOf(url), ...(net.isIP(host) ? {} : { servername: host }) })
  const abort = () => socket.destroy(new Error('no answer'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    await opened(socket, 'secureConnect')
    return judged(socket, host)
  } catch (error) {
    signal.throwIfAborted()
    return fail(`${host} is not trusted: ${messageOf(error)}.`, trustFix(error, config.caFile))
  } finally {
    signal.removeEventListener('abort', abort)
    socket.destroy()
  }
}

function judged(socket: TLSSocket, host: string): Answer {
  const { valid_to: until, issuer } = socket.getPeerCertificate()
  const leftMs = Date.parse(until) - Date.now()
  const by = issuer.O ?? issuer.CN
  const days = Math.floor(leftMs / DAY_MS)
  const what = `${socket.getProtocol() ?? 'TLS'}, certificate of ${String(by)}`
  if (leftMs > CERTIFICATE_DAYS * DAY_MS) return ok(`${what}, good for ${days} more days`)
  return warn(`${what} ends in ${days} days.`, `whoever keeps ${host} renews its certificate`)
}

const CLOCK = /CERT_(NOT_YET_VALID|HAS_EXPIRED)/
const NAME = /ALTNAME/

/** There is no way to go on without trust, on purpose: only to say whom else to trust. */
function trustFix(error: unknown, caFile: string | undefined): string {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  if (CLOCK.test(code))
    return 'see that the clock of this machine is right; else the certificate has to be renewed there'
  if (NAME.test(code)) return 'use the name in WINDLASS_URL that stands in the certificate'
  if (caFile !== undefined) return `${caFile} does not hold the certificate of whoever signed this one: add it there`
  return 'put the certificate of your own authority into a file and name it by --ca-file or WINDLASS_AGENT_CA_FILE'
}

function opened(socket: net.Socket, event: 'connect' | 'secureConnect'): Promise<void> {
  return new Promise((resolve, reject) => {
    socket.once(event, resolve)
    // Not `once`: a socket that is torn down may fail a second time.
    socket.on('error', reject)
  })
}
