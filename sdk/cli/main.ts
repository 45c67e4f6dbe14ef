import { runThisProcess } from './command-line.ts'
import { main } from './program.ts'

await runThisProcess(main)
