import type { Command } from 'commander'
import type { AgentStatus } from '@windlass/agent/status/status.ts'
import type { Daemon } from '@windlass/agent/support/daemon.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { isolationText } from '../fleet/state.ts'
import { does } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { bytesText, cellTime, lengthText, note, paint, print, timeText } from '../terminal.ts'
import { addAgentFlags, homeAt, AGENT_FLAGS_HELP } from './agent-flags.ts'

const HELP = `${AGENT_FLAGS_HELP}
It is read from the state folder and asks nobody, so that it works without the coordinator as well. Exit codes: 0 the agent runs ·
1 it does not.
  windlass agent status`

export function addAgentStatus(group: Command): void {
  const command = group
    .command('status')
    .description('How the agent of this machine is, as it says itself.')
    .addHelpText('after', HELP)
  addAgentFlags(command)
  does(command, async (session, _positional, options) => {
    const home = await homeAt(session, options)
    const { daemonOf } = await import('@windlass/agent/support/daemon.ts')
    const { lastStatus } = await import('@windlass/agent/support/last-status.ts')
    const daemon = daemonOf(home)
    if (daemon.state === 'hidden')
      throw new Failure(`${home} belongs to another user.`, 'sudo windlass agent status', EXIT.refused, 'FORBIDDEN')
    const status = lastStatus(home)
    await session.answer({ home, daemon, status: status ?? null }, () => tell(home, daemon, status))
    return daemon.state === 'running' ? EXIT.ok : EXIT.failed
  })
}

async function tell(home: string, daemon: Daemon, status: AgentStatus | undefined): Promise<void> {
  printFields([['agent', daemonText(daemon)], ['folder', home], ...(status ? fieldsOf(status, daemon) : [])])
  if (daemon.state === 'never-started')
    note('Next: windlass pools token <pool>, then windlass agent start --token <token>')
  if (daemon.state === 'stopped')
    note('Next: systemctl start windlass-agent, or windlass agent start; windlass agent logs tells why')
  if (!status || status.runs.length === 0) return
  print('')
  const rows = status.runs.map((each) => [
    each.run,
    each.workflow,
    String(each.attempt),
    each.isParked ? 'parked' : 'executing',
    cellTime(each.since),
  ])
  await printTable(['RUN', 'WORKFLOW', 'ATTEMPT', 'HOW', 'SINCE?'], rows)
}

function daemonText(daemon: Daemon): string {
  if (daemon.state === 'running') return paint('green', `runs as process ${daemon.pid}`, process.stdout)
  const text = daemon.state === 'stopped' ? 'does not run' : 'was never started with this folder'
  return paint('red', text, process.stdout)
}

function fieldsOf(status: AgentStatus, daemon: Daemon): [string, string][] {
  const { slots, spool, bundles, connection, unready } = status
  const isRunning = daemon.state === 'running' && daemon.pid === status.pid
  const ago = lengthText(Math.max(0, Date.now() - status.at))
  return [
    ['said', isRunning ? `${ago} ago` : `${ago} ago, before it ended; what follows was so then`],
    ['runner', `${status.name} (${status.runner}) in pool ${status.pool} of ${status.org}`],
    ['version', status.version],
    ['started', timeText(status.startedAt)],
    ['coordinator', `${status.url}, ${connection.state} since ${timeText(connection.since)}`],
    [
      'last',
      `poll ${timeText(status.lastPollAt)}, heartbeat ${timeText(status.lastHeartbeatAt)}, ` +
        `ack ${timeText(status.lastAckAt)}`,
    ],
    ['intake', intakeText(status)],
    ...unready.map(({ check, message }): [string, string] => ['unready', `${check}: ${message}`]),
    ['slots', `${slots.total - slots.free} of ${slots.total} in use`],
    ['labels', status.labels.join(', ') || '-'],
    ['isolation', isolationText(status.isolation)],
    ['spool', spoolText(spool)],
    ['bundles', `${bundles.count}, ${bytesText(bundles.bytes)}`],
  ]
}

function intakeText({ intake, state }: AgentStatus): string {
  if (intake.isLeaving) return state === 'stopped' ? 'stopped' : 'is being stopped, and waits for what it executes'
  const end = intake.deadlineAt === null ? '' : `, deadline ${timeText(intake.deadlineAt)}`
  const why = intake.reason === '' ? '' : `: ${intake.reason}`
  return intake.state === 'open' ? 'takes work' : `${intake.state} (epoch ${intake.epoch})${end}${why}`
}

function spoolText({ placements, unacknowledged, trouble }: AgentStatus['spool']): string {
  const what = `${placements} runs, ${bytesText(unacknowledged)} not acknowledged`
  return trouble === null ? what : `${what}; ${trouble}`
}
