import { environment } from '../../config.ts'
import { runAgent } from '../../run-agent.ts'
import { QUICK } from './quick.ts'

// `main.ts` with other paces.
process.exit(await runAgent({}, environment(), QUICK))
