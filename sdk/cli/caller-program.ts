import type { Command } from 'commander'
import { createCommandLine } from './command-line.ts'
import { addAudit } from './commands/audit.ts'
import { addCompletion } from './commands/completion.ts'
import { addConnections } from './commands/connections.ts'
import { addDeliveries } from './commands/deliveries.ts'
import { addDeploy } from './commands/deploy.ts'
import { addDev } from './commands/dev.ts'
import { addEvents } from './commands/events.ts'
import { addFleet } from './commands/fleet.ts'
import { addInit } from './commands/init.ts'
import { addInputs } from './commands/inputs.ts'
import { addKeys } from './commands/keys.ts'
import { addLogs } from './commands/logs.ts'
import { addProfiles } from './commands/profiles.ts'
import { addRetention } from './commands/retention.ts'
import { addRun } from './commands/run.ts'
import { addRuns } from './commands/runs.ts'
import { addSchedules } from './commands/schedules.ts'
import { addSecrets } from './commands/secrets.ts'
import { addUpgradeSdk } from './commands/upgrade-sdk.ts'
import { addVariables } from './commands/variables.ts'
import { addWebhooks } from './commands/webhooks.ts'
import { EXIT_TEXT } from './exit-codes.ts'
import { addFromTable, groupCommand } from './from-table.ts'

const HELP = `
Where to: --url, --api-key and --org, or WINDLASS_URL, WINDLASS_API_KEY and WINDLASS_ORG, or a profile \
(windlass profiles --help).
Without them the instance that \`npm start\` runs is found by itself: in WINDLASS_HOME or, if it is on this machine,
in the nearest .windlass folder from here upwards. A session (--session, WINDLASS_SESSION) is used where no API key
will do: to write keys and secrets.
With --json standard output is JSON alone, and an error is one line of JSON on standard error.
${EXIT_TEXT}`

/** The commands that speak to a service. `addHost` adds those that act on the machine of an agent or a coordinator. */
export function createCallerProgram(addHost: (program: Command) => void): Command {
  const program = createCommandLine('Write, deploy and run Windlass workflows.')
    .option('--url <url>', 'the address of the service')
    .option('--api-key <key>', 'an API key')
    .option('--session <token>', 'a session, for what no API key may do')
    .option('--org <slug>', 'the org')
    .option('--profile <name>', 'a service that was kept by `windlass profiles add`; `local` is what npm start runs')
    .option('--json', 'print the answer of the API as JSON')
    .addHelpText('after', HELP)
  addInit(program)
  addUpgradeSdk(program)
  addDev(program)
  addDeploy(program)
  addRun(program)
  addLogs(program)
  addEvents(program)
  addRuns(program)
  groupCommand(program, 'jobs')
  addInputs(program)
  groupCommand(program, 'workflows')
  addSchedules(program)
  addWebhooks(program)
  addConnections(program)
  addDeliveries(program)
  groupCommand(program, 'environments')
  addVariables(program)
  addSecrets(program)
  addKeys(program)
  addRetention(program)
  addAudit(program)
  addProfiles(program)
  addFleet(program)
  addHost(program)
  addCompletion(program)
  addFromTable(program)
  return program
}
