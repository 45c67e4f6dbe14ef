import http from 'node:http'
import https from 'node:https'
import { proxyOptions } from '../outbound.ts'

/**
 * `fetch` as far as a poll needs it, over node:http with a kept-alive connection. The global one takes a millisecond more of
 * CPU for each call, and between the answer to a poll and the program's first line every millisecond is waited for.
 */
export function createPollFetch(): typeof fetch {
  const agents = {
    'http:': new http.Agent({ keepAlive: true, ...proxyOptions('http:') }),
    'https:': new https.Agent({ keepAlive: true, ...proxyOptions('https:') }),
  }
  return (input, init = {}) => {
    const url = new URL(input instanceof Request ? input.url : input)
    const { request } = url.protocol === 'https:' ? https : http
    return new Promise((resolve, reject) => {
      const headers = Object.fromEntries(new Headers(init.headers))
      const signal = init.signal ?? undefined
      const sent = request(url, {
        method: init.method ?? 'GET',
        headers,
        signal,
        agent: agents[url.protocol as keyof typeof agents],
      })
      // Not `once`: a request that was given up may fail a second time, and an error without a listener ends the agent.
      sent.on('error', reject)
      sent.once('response', (response) => {
        read(response)
          .then((text) => answer(response, text))
          .then(resolve, reject)
      })
      sent.end(typeof init.body === 'string' ? init.body : undefined)
    })
  }
}

/** Statuses for which `Response` refuses a body, even an empty one. */
const BODILESS = new Set([204, 205, 304])

async function read(response: http.IncomingMessage): Promise<string> {
  response.setEncoding('utf8')
  let text = ''
  for await (const chunk of response) text += chunk as string
  return text
}

function answer(response: http.IncomingMessage, text: string): Response {
  const headers = Object.entries(response.headers).map(([name, value]): [string, string] => [name, String(value)])
  const status = response.statusCode ?? 500
  return new Response(BODILESS.has(status) ? null : text, { status, headers })
}
