import { environment } from '../config.ts'

/**
 * The proxy by which an address is reached, after the variables that all programs know. Node heeds them only with
 * NODE_USE_ENV_PROXY=1; `isHeeded` asks as if it did.
 */
export function proxyFor(url: URL, options: { isHeeded?: boolean } = {}): string | undefined {
  const env = environment()
  if (!options.isHeeded && env['NODE_USE_ENV_PROXY'] !== '1') return undefined
  const name = url.protocol === 'https:' ? 'https_proxy' : 'http_proxy'
  const proxy = env[name] || env[name.toUpperCase()]
  if (!proxy || isLeftOut(url, env['no_proxy'] || env['NO_PROXY'] || '')) return undefined
  return proxy.includes('://') ? proxy : `http://${proxy}`
}

function isLeftOut({ hostname, port }: URL, list: string): boolean {
  return list
    .split(/[\s,]+/)
    .filter((each) => each !== '')
    .some((each) => each === '*' || matches(each.toLowerCase(), hostname, port))
}

/** `example.org`, `.example.org`, `*.example.org`, each with a port if need be. */
function matches(each: string, hostname: string, port: string): boolean {
  const [, name = '', wanted] = /^(.*?)(?::(\d+))?$/.exec(each) ?? []
  if (wanted !== undefined && wanted !== port) return false
  if (name.startsWith('.') || name.startsWith('*')) return hostname.endsWith(name.replace(/^\*/, ''))
  return hostname === name
}
