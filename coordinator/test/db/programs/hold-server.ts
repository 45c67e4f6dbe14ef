// Starts the embedded server of a home, says so in a line, and stops it when its input ends.
import { once } from 'node:events'
import { createLog } from '@windlass/shared/log.ts'
import { startEmbedded } from '../../../db/embedded.ts'

const [home = ''] = process.argv.slice(2)
const server = await startEmbedded({ home, log: createLog({ part: 'test' }) })
process.stdout.write(`${JSON.stringify({ url: server.url, pid: server.pid, adopted: server.adopted })}\n`)
await once(process.stdin.resume(), 'end')
await server.stop()
