import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Intake, Runner } from '@windlass/shared/model/runner.ts'
import { confirmed } from '../fleet/confirm.ts'
import { runnerId } from '../fleet/names.ts'
import { tellPlan } from '../fleet/plan.ts'
import { isolationText, stateText } from '../fleet/state.ts'
import { rowArgs, rowCommand } from '../from-table.ts'
import { tellNextPage } from '../next-page.ts'
import { does } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { cellTime, note, paint, print, safe, timeText } from '../terminal.ts'
import { addDrain } from './runner-drain.ts'

export const BY_NAME = '\n<runner> is the id of a runner, or its name where no other has it.'

export function addRunners(group: Command): void {
  addList(group)
  addGet(group)
  addPlan(group)
  addDrain(group)
  addRevoke(group)
  addDeregister(group)
}

function addList(group: Command): void {
  does(rowCommand(group, 'list', ops.runners.list), async (session, positional, options) => {
    const answer = await session.client.runners.list(await rowArgs(ops.runners.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.runners.map((runner) => [
        runner.id,
        runner.name,
        runner.pool.name,
        stateText(runner),
        `${runner.activeRuns}/${runner.slots}`,
        runner.isolation?.level ?? '-',
        cellTime(runner.lastHeartbeatAt),
        runner.upgrade ? paint('red', runner.version, process.stdout) : runner.version,
      ])
      const head = ['RUNNER', 'NAME', 'POOL', 'STATE', 'BUSY', 'ISOLATION?', 'HEARD OF?', 'VERSION?']
      await printTable(head, rows)
      if (rows.length === 0) note('No runners. Next: windlass pools token default')
      tellUpgrades(answer.runners)
      tellNextPage(answer.nextCursor)
    })
  })
}

/** Machines that are behind are mostly behind by the same, so that one command serves them. */
function tellUpgrades(runners: Runner[]): void {
  // `Map.groupBy` would do it, but Node 20 has none.
  const commands = new Set(runners.flatMap(({ upgrade }) => (upgrade === null ? [] : [upgrade.command])))
  for (const command of commands) {
    const behind = runners.filter(({ upgrade }) => upgrade?.command === command)
    const names = behind.map(({ name }) => safe(name, process.stderr)).join(', ')
    note(`Older than the service: ${names}. Next, there: ${command}`)
  }
}

function addGet(group: Command): void {
  const command = rowCommand(group, 'get', ops.runners.get, `${BY_NAME}\n  windlass runners get build-1`)
  does(command, async (session, [given = '']) => {
    const answer = await session.client.runners.get({ runner: await runnerId(session.client, given) })
    await session.answer(answer, () => {
      printFields(fieldsOf(answer.runner))
      tellUpgrades([answer.runner])
    })
  })
}

function fieldsOf(runner: Runner): [string, string][] {
  const { live, quarantine, copyRefusedAt } = runner
  return [
    ['runner', runner.id],
    ['name', runner.name],
    ['pool', runner.pool.name],
    ['state', stateText(runner)],
    [
      'heard of',
      `${runner.status}, last poll ${timeText(runner.lastPollAt)}, last heartbeat ${timeText(runner.lastHeartbeatAt)}`,
    ],
    ['intake', intakeText(runner.intake)],
    ...(quarantine
      ? [['quarantine', `until ${timeText(quarantine.until)}: ${quarantine.reason}`] as [string, string]]
      : []),
    ...runner.unready.map(({ check, message }): [string, string] => ['unready', `${check}: ${message}`]),
    ['busy', `${runner.activeRuns} of ${runner.slots} slots`],
    ['has', `${live.executing} executing, ${live.parked} parked, ${live.offered} offered`],
    ['labels', runner.labels.join(', ') || '-'],
    ['isolation', isolationText(runner.isolation)],
    ['version', `${runner.version} (protocol ${runner.protocol}) on ${runner.platform}`],
    ['joined', timeText(runner.createdAt)],
    ...(copyRefusedAt === null
      ? []
      : [
          ['copy refused', `${timeText(copyRefusedAt)}: another machine came with its state folder`] as [
            string,
            string,
          ],
        ]),
  ]
}

function intakeText({ state, epoch, since, by, reason, deadlineAt, onDeadline }: Intake): string {
  const parts = [
    `${state} since ${timeText(since)}`,
    by ? `by ${by.name || by.kind}` : '',
    deadlineAt === null ? '' : `deadline ${timeText(deadlineAt)}, then ${onDeadline ?? 'leave'}`,
    `epoch ${epoch}`,
  ]
  return parts.filter((part) => part !== '').join(', ') + (reason === '' ? '' : `: ${reason}`)
}

function addPlan(group: Command): void {
  const command = rowCommand(group, 'plan', ops.runners.plan, `${BY_NAME}\n  windlass runners plan build-1`)
  does(command, async (session, [given = '']) => {
    const answer = await session.client.runners.plan({ runner: await runnerId(session.client, given) })
    await session.answer(answer, () => tellPlan(answer.plan))
  })
}

const REVOKE_HELP = `${BY_NAME} Its programs are killed at once and its runs start again elsewhere. There is no way back:
the machine joins anew with another token. To stop one gently: windlass runners drain.
  windlass runners revoke build-1 --reason 'laptop was stolen'`

function addRevoke(group: Command): void {
  const command = rowCommand(group, 'revoke', ops.runners.revoke, REVOKE_HELP)
  command.option('-y, --yes', 'without asking')
  does(command, async (session, [given = ''], options) => {
    const { runner: _, ...args } = await rowArgs(ops.runners.revoke, [given], options)
    const runner = await runnerId(session.client, given)
    await confirmed(session, `Shut ${given} out for good, and kill what it executes?`, options['yes'] === true)
    const answer = await session.client.runners.revoke({ ...args, runner })
    await session.answer(answer, () => {
      print(`${safe(answer.runner.name, process.stdout)} is revoked (epoch ${answer.runner.intake.epoch})`)
      note(`Next: windlass runners deregister ${answer.runner.id} forgets it`)
    })
  })
}

const DEREGISTER_HELP = `${BY_NAME} Without --force it must be offline or revoked, and have no runs.
  windlass runners deregister build-1`

function addDeregister(group: Command): void {
  const command = rowCommand(group, 'deregister', ops.runners.deregister, DEREGISTER_HELP)
  command.option('-y, --yes', 'without asking')
  does(command, async (session, [given = ''], options) => {
    const isForced = options['force'] === true
    const runner = await runnerId(session.client, given)
    await confirmed(session, forgetting(given, isForced), options['yes'] === true)
    await session.client.runners.deregister({ runner, force: isForced })
    await session.answer({}, () => print(`${given} is forgotten`))
  })
}

function forgetting(given: string, isForced: boolean): string {
  return isForced ? `Shut ${given} out for good, kill what it executes, and forget it?` : `Forget ${given}?`
}
