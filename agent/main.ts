import { environment } from './config.ts'
import { runAgent } from './run-agent.ts'

// Sockets that fetch keeps for later would hold the process for some seconds more.
process.exit(await runAgent({}, environment()))
