import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface Answer {
  status: number
  text: string
}

/** Stands before the coordinator and changes what it answers, as a rebuild might do by mistake. */
export async function between(target: string, change: (answer: Answer) => Answer) {
  const server = createServer((request, response) => {
    const headers = Object.entries(request.headers).filter(([name]) => !['host', 'connection'].includes(name))
    const answered = async () => {
      const chunks: Buffer[] = []
      for await (const chunk of request) chunks.push(chunk as Buffer)
      const body = chunks.length > 0 ? Buffer.concat(chunks) : undefined
      const sent = { method: request.method ?? 'GET', headers: headers as [string, string][], body }
      const answer = await fetch(target + request.url, sent)
      const { status, text } = change({ status: answer.status, text: await answer.text() })
      const passed = [...answer.headers].filter(([name]) => !['content-length', 'connection'].includes(name))
      response.writeHead(status, Object.fromEntries(passed)).end(text)
    }
    answered().catch((error: Error) => response.destroy(error))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close(): Promise<void> {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}
