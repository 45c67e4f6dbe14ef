import type { Command } from 'commander'
import { addAgentBundle } from './agent-bundle.ts'
import { addAgentConfig } from './agent-config.ts'
import { addAgentDoctor } from './agent-doctor.ts'
import { addAgentLogs } from './agent-logs.ts'
import { addAgentStart } from './agent-start.ts'
import { addAgentStatus } from './agent-status.ts'

/** `windlass agent`: on the machine of an agent. A command has a file here; what it does lies in the agent. */
export function addAgent(program: Command): void {
  const group = program.command('agent').description('The agent: makes this machine execute runs.')
  addAgentStart(group)
  addAgentStatus(group)
  addAgentDoctor(group)
  addAgentLogs(group)
  addAgentBundle(group)
  addAgentConfig(group)
}
