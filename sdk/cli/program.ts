import type { Command } from 'commander'
import { createCallerProgram } from './caller-program.ts'
import { runCommandLine } from './command-line.ts'
import { addAdmin } from './commands/admin.ts'
import { addAgent } from './commands/agent.ts'

/** Runs one command line. The exit code is left in `process.exitCode`, so that pipes are written out. */
export async function main(args: string[]): Promise<void> {
  await runCommandLine(createProgram(), args)
}

export function createProgram(): Command {
  return createCallerProgram((program) => {
    addAgent(program)
    addAdmin(program)
  })
}
