// A coordinator in a process of its own, which can be killed or stand still.
import { readConfig } from '../../../config.ts'
import { startCoordinator } from '../../../start.ts'

await startCoordinator(readConfig())
process.send!({})
