import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { does } from '../session.ts'
import { json, note, print } from '../terminal.ts'

const NEXT = 'windlass pools token <pool> | windlass agent register --token-stdin'

/** For installers: the token comes by a pipe, and is gone when the agent starts. */
export function addAgentRegister(group: Command): void {
  const command = group
    .command('register')
    .description('Join a pool without starting; `agent start` then needs no token.')
    .requiredOption('--token-stdin', 'read the registration token from standard input')
    .option('--home <folder>', 'where keys, spool and bundles are kept')
    .option('--config <file>', 'settings, as WINDLASS_AGENT_CONFIG names them')
    .option('--allow-http', 'speak plain http with another machine, on a network that you trust')
  does(command, async (session, _positional, options) => {
    const { home, config: file, allowHttp } = options as { home?: string; config?: string; allowHttp?: boolean }
    const token = (await text(process.stdin)).trim()
    if (token === '') throw new Failure('Standard input holds no token.', NEXT)
    const [{ configOf }, { registerAgent }, { becomeOwner }, { trustCaFile }, { AgentRefusal }, { createLog }] =
      await Promise.all([
        import('@windlass/agent/run-agent.ts'),
        import('@windlass/agent/register.ts'),
        import('@windlass/agent/support/owner.ts'),
        import('@windlass/agent/trust.ts'),
        import('@windlass/agent/exit-codes.ts'),
        import('@windlass/shared/log.ts'),
      ])
    try {
      const config = configOf({ url: session.flags.url, token, home, config: file, allowHttp }, process.env)
      trustCaFile(config.caFile)
      // Installed again: its folder belongs to the user that the agent has.
      becomeOwner({ settingsFile: undefined, home: config.home })
      const { identity, isNew } = await registerAgent(config, createLog({ part: 'agent' }, 'warn'))
      const { runner, org, pool } = identity
      if (session.isJson) print(json({ runner, org, pool, isNew }))
      else note(isNew ? `Registered as ${runner} in the pool ${pool}.` : `It is registered already, as ${runner}.`)
      return EXIT.ok
    } catch (error) {
      if (!(error instanceof AgentRefusal)) throw error
      throw new Failure(error.message, NEXT, error.exitCode, 'AGENT_REFUSED')
    }
  })
}
