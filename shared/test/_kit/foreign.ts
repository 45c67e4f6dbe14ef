import http from 'node:http'
import type { ServerResponse } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'

export interface Foreign {
  status: number
  type: string
  body: string
}

const page = (status: number, text: string): Foreign => ({ status, type: 'text/html', body: `<html>${text}</html>` })
const json = (status: number, value: object): Foreign => ({
  status,
  type: 'application/json',
  body: JSON.stringify(value),
})

/** What stands between answers in place of a service that it does not reach, or lets nobody reach. */
export const FOREIGN: readonly Foreign[] = [
  { status: 404, type: 'text/plain', body: '404 page not found\n' },
  page(400, 'The plain HTTP request was sent to HTTPS port'),
  page(401, 'Authorization required'),
  page(403, 'Forbidden'),
  page(410, 'Gone'),
  page(416, 'Range not satisfiable'),
  json(404, { message: 'no Route matched with those values' }),
  json(404, { error: { code: '404', message: 'NOT_FOUND' } }),
  json(404, { error: { code: 404, message: 'not found', status: 'NOT_FOUND' } }),
  json(403, { error: { code: 'AuthorizationFailed', message: 'no' } }),
  page(503, 'Service unavailable'),
  page(200, 'Please log in'),
]

export function answerAs(response: ServerResponse, { status, type, body }: Foreign): undefined {
  response.writeHead(status, { 'content-type': type }).end(body)
}

/** A server that answers each request with the next of these, and then as it is told. */
export async function behindForeign(
  t: TestContext,
  answers: readonly Foreign[],
  then: http.RequestListener,
): Promise<{ url: string; left: () => number }> {
  const left = [...answers]
  const server = http.createServer((request, response) => {
    const foreign = left.shift()
    if (!foreign) return then(request, response)
    request.resume().once('end', () => answerAs(response, foreign))
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, left: () => left.length }
}
