/** What the framework does at least, for the bench to hold us against: constants by their path, and bodies read as JSON. */
import { Server } from 'hyper-express'
import { freePort } from '../../../http/free-port.ts'

const HOST = '127.0.0.1'
const JSON_TYPE = 'application/json; charset=utf-8'

process.once('message', (answers: Record<string, string>) => void serve(answers))

async function serve(answers: Record<string, string>): Promise<void> {
  const server = new Server({ auto_close: false })
  for (const [path, text] of Object.entries(answers)) {
    server.get(path, (_request, response) => void response.header('content-type', JSON_TYPE).send(text))
    server.post(path, (request, response) => {
      void request.json().then(() => response.status(201).header('content-type', JSON_TYPE).send(text))
    })
  }
  await server.listen(await freePort(HOST, 0), HOST)
  process.send!({ port: server.port })
}
