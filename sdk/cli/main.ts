import { endWithClosedPipes } from './command-line.ts'
import { main } from './program.ts'

endWithClosedPipes()
await main(process.argv.slice(2))
