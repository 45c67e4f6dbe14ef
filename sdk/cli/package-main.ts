import type { Command } from 'commander'
import { createCallerProgram } from './caller-program.ts'
import { runCommandLine, runThisProcess } from './command-line.ts'
import { EXIT } from './exit-codes.ts'
import { Failure } from './failure.ts'

// The command of the package `windlass-cli`, which has neither agent nor coordinator; coordinator/downloads bundles it.

const caller = createCallerProgram((program) => {
  addElsewhere(program, 'agent', 'on the machine of an agent, where its installation brings the command along')
  addElsewhere(program, 'admin', "on the coordinator's host: npx windlass admin, in its checkout")
})
await runThisProcess((args) => runCommandLine(caller, args))

/** Says where a command is that this package does not have. */
function addElsewhere(program: Command, name: string, where: string): void {
  program
    .command(name)
    .description(`Only ${where}.`)
    .argument('[words...]')
    .allowUnknownOption()
    .action(() => {
      throw new Failure(`\`windlass ${name}\` is not part of this package.`, where, EXIT.usage)
    })
}
