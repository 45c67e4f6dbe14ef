import type { Command } from 'commander'
import { does } from '../session.ts'

const HELP = `
The token comes from \`windlass pools token <pool>\` and is needed for the first start only: the agent then has a key pair of its
own, in its state folder. Everything can be set by the environment as well (WINDLASS_URL, WINDLASS_AGENT_TOKEN, …_NAME, …_SLOTS,
…_LABELS, …_HOME). Ctrl-C or SIGTERM lets programs finish for a while, a second one ends it at once.
  windlass agent start --url http://coordinator:8787 --token wlr_…
Exit codes: 0 asked to stop · 70 internal · 73 state folder in use · 76 too old for the coordinator · 77 refused · 78 wrong setting`

interface AgentStartFlags {
  token?: string
  name?: string
  slots?: string
  labels?: string
  home?: string
}

export function addAgent(program: Command): void {
  const group = program.command('agent').description('The agent: makes this machine execute runs.')
  const command = group
    .command('start')
    .description('Join a pool, or come back to it, and execute runs until told to stop.')
    .option('--token <token>', 'a registration token')
    .option('--name <name>', 'what the machine is called; its host name when left out')
    .option('--slots <number>', 'how many runs at once')
    .option('--labels <list>', 'comma-separated labels that workflows may ask for')
    .option('--home <folder>', 'where keys, spool and bundles are kept; .windlass/agent when left out')
    .addHelpText('after', HELP)
  does(command, async (session, _positional, options) => {
    const { token, name, slots, labels, home } = options as AgentStartFlags
    const { url } = session.settings
    // The agent with all its packages is loaded by the one command that is it.
    const { runAgent } = await import('@windlass/agent/run-agent.ts')
    const code = await runAgent({ url, token, name, slots, labels, home }, process.env)
    // Connections kept open for reuse would hold the process for some seconds more.
    process.exit(code)
  })
}
