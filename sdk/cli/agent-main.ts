import { createCommandLine, runCommandLine, runThisProcess } from './command-line.ts'
import { addAgentRegister } from './commands/agent-register.ts'
import { addAgentUninstall } from './commands/agent-uninstall.ts'
import { addAgent } from './commands/agent.ts'

// The command on the machine of an agent, which has no checkout: coordinator/downloads bundles it with all it needs.

const program = createCommandLine('The Windlass agent: makes this machine execute runs.')
  .option('--url <url>', 'the address of the service')
  .option('--json', 'print as JSON')
addAgent(program)
for (const group of program.commands.filter((command) => command.name() === 'agent')) {
  addAgentRegister(group)
  addAgentUninstall(group)
}
await runThisProcess((args) => runCommandLine(program, args))
