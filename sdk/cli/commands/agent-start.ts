import type { Command } from 'commander'
import { EXIT_TEXT } from '@windlass/agent/exit-codes.ts'
import { does } from '../session.ts'
import { addAgentFlags, locateOptionsOf, AGENT_FLAGS_HELP } from './agent-flags.ts'
import type { AgentFlags } from './agent-flags.ts'

const HELP = `${AGENT_FLAGS_HELP}
The token comes from \`windlass pools token <pool>\` and is needed for the first start only: the agent then has a key pair of its
own, in its state folder. Everything can be set by the environment as well (WINDLASS_URL, WINDLASS_AGENT_TOKEN, …_NAME, …_SLOTS,
…_LABELS, …_HOME). Ctrl-C or SIGTERM lets programs finish for a while, a second one asks them to stop, a third one kills them.
  windlass agent start --url https://windlass.example.com --token wlr_…
${EXIT_TEXT}`

interface StartFlags extends AgentFlags {
  token?: string
  name?: string
  slots?: string
  labels?: string
}

export function addAgentStart(group: Command): void {
  const command = group
    .command('start')
    .description('Join a pool, or come back to it, and execute runs until told to stop.')
    .option('--token <token>', 'a registration token')
    .option('--name <name>', 'what the machine is called; its host name when left out')
    .option('--slots <number>', 'how many runs at once')
    .option('--labels <list>', 'comma-separated labels that workflows may ask for')
    .option('--ca-file <file>', 'certificates (PEM) that are trusted besides those of Node')
    .option('--allow-http', 'speak plain http with another machine, on a network that you trust')
    .addHelpText('after', HELP)
  addAgentFlags(command)
  does(command, async (session, _positional, options) => {
    const flags = options as StartFlags
    // The address of a local instance stands for one that nothing else says.
    const { url } = await locateOptionsOf(session, flags)
    // The agent with all its packages is loaded by the one command that is it.
    const { runAgent } = await import('@windlass/agent/run-agent.ts')
    const code = await runAgent({ ...flags, url: session.flags.url ?? url }, process.env)
    // Connections kept open for reuse would hold the process for some seconds more.
    process.exit(code)
  })
}
