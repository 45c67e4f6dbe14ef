import http from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

/** What becomes of the answer: no byte of it, the page of a proxy in its place, or half of it. */
export type Loss = 'drop' | '502' | 'half'

export interface LosingProxy {
  url: string
  /** Which answers are lost, once the service has given them; none in the beginning. */
  loses: { how: Loss; what: (request: string) => boolean } | undefined
}

/** Passes every request on, and loses the answers that it is told to lose after the service has done what was asked. */
export async function startLosingProxy(t: TestContext, target: string): Promise<LosingProxy> {
  const proxy: LosingProxy = { url: '', loses: undefined }
  const server = http.createServer((request, response) => {
    const { method, headers, url } = request
    const up = http.request(new URL(url ?? '/', target), { method, headers }, (answer) => {
      const { loses } = proxy
      if (loses?.what(`${method} ${url}`) && (answer.statusCode ?? 0) < 300) void lose(loses.how, answer, response)
      else answer.pipe(response.writeHead(answer.statusCode ?? 502, answer.headers))
    })
    up.on('error', () => response.destroy())
    request.pipe(up)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(() => {
    server.close()
    server.closeAllConnections()
  })
  proxy.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  return proxy
}

async function lose(how: Loss, answer: IncomingMessage, response: ServerResponse): Promise<void> {
  const whole = Buffer.concat((await answer.toArray()) as Buffer[])
  if (how === 'drop') response.destroy()
  else if (how === '502') response.writeHead(502, { 'content-type': 'text/html' }).end('<html>502 Bad Gateway</html>')
  else {
    response.writeHead(answer.statusCode ?? 200, { ...answer.headers, 'content-length': String(whole.length + 1) })
    response.write(whole.subarray(0, whole.length / 2), () => response.destroy())
  }
}

/** All that changes something. */
export const changes = (request: string) => !request.startsWith('GET ')
