/** Returns whether a host, written as a URL's `hostname`, is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/.test(hostname.toLowerCase())
}

/** Returns whether what is said to a URL can be read on the way: it is plain http to another machine. */
export function isReadable(url: string): boolean {
  const { protocol, hostname } = new URL(url)
  return protocol === 'http:' && !isLoopbackHost(hostname)
}
