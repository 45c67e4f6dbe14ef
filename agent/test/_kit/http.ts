import type http from 'node:http'
import type { Duplex } from 'node:stream'

export async function readJson(request: http.IncomingMessage) {
  let text = ''
  for await (const chunk of request) text += chunk
  return JSON.parse(text)
}

/** An agent may give up a request before we have read it. */
export async function unlessGivenUp(request: http.IncomingMessage, serving: Promise<void>): Promise<void> {
  try {
    await serving
  } catch (error) {
    if (!request.destroyed) throw error
  }
}

export function answer(response: http.ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

export function refuse(response: http.ServerResponse, status: number, code: string): void {
  answer(response, status, { error: { code, message: `refused with ${code}` } })
}

/** Says to an upgrade, as a coordinator does, that it does not know who asks. */
export function refuseUpgrade(socket: Duplex, { date, detail }: { date?: string; detail?: object } = {}): void {
  const body = JSON.stringify({ error: { code: 'UNAUTHENTICATED', message: 'no', detail } })
  const dated = date === undefined ? '' : `date: ${date}\r\n`
  const head = `HTTP/1.1 401 Unauthorized\r\n${dated}content-length: ${body.length}\r\nconnection: close\r\n\r\n`
  socket.end(head + body)
}
