/** Returns whether a host, written as a URL's `hostname`, is this machine. */
export function isLoopbackHost(hostname: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/.test(hostname.toLowerCase())
}
