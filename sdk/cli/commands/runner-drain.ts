import { Option } from 'commander'
import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Runner } from '@windlass/shared/model/runner.ts'
import { lengthFlag, wholeNumber } from '../duration-flag.ts'
import { drained } from '../fleet/drained.ts'
import { runnerId } from '../fleet/names.ts'
import { tellPlan } from '../fleet/plan.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { note, print, safe, timeText } from '../terminal.ts'

const HELP = `
<runner> is the id of a runner, or its name where no other has it. It gets nothing new, what only waits moves elsewhere, and what
executes ends there. Ctrl-C stops the waiting alone: \`windlass runners resume\` undoes a drain.
With --wait: 0 the coordinator says that it is drained · 124 the deadline passed before · 6 somebody resumed or changed it meanwhile.
  windlass runners drain build-1 --plan
  windlass runners drain build-1 --wait --deadline 30m --reason 'kernel update'`

interface DrainFlags {
  wait?: boolean
  plan?: boolean
  deadline: string
  onDeadline: 'cancel' | 'leave'
  reason?: string
  epoch?: string
}

export function addDrain(group: Command): void {
  const command = group
    .command('drain')
    .description(ops.runners.drain.summary)
    .argument('<runner>')
    .option('-w, --wait', 'until it is drained, with its progress')
    .option('--plan', 'print what the drain would meet, and change nothing')
    .option('--deadline <duration>', 'how long it may take', '1h')
    .addOption(
      new Option('--on-deadline <what>', 'what becomes then of what still executes')
        .choices(['cancel', 'leave'])
        .default('leave'),
    )
    .option('--reason <text>', 'why, for those who read the log')
    .option('--epoch <number>', 'only if the epoch of its intake is still this')
    .addHelpText('after', HELP)
  does(command, async (session, [given = ''], options) => {
    const flags = options as unknown as DrainFlags
    const runner = await runnerId(session.client, given)
    if (flags.plan) return plan(session, runner)
    const answer = await session.client.runners.drain({ runner, ...argsOf(flags) })
    if (flags.wait) return drained(session, answer.runner)
    return session.answer(answer, () => tell(answer.runner))
  })
}

async function plan(session: Session, runner: string): Promise<void> {
  const answer = await session.client.runners.plan({ runner })
  await session.answer(answer, () => tellPlan(answer.plan))
}

function argsOf({ deadline, onDeadline, reason, epoch }: DrainFlags) {
  return {
    deadlineMs: lengthFlag('--deadline', deadline, 'runners drain … --deadline 30m'),
    onDeadline,
    ...(reason !== undefined && { reason }),
    ...(epoch !== undefined && { epoch: wholeNumber('--epoch', epoch, 'runners drain … --epoch 4') }),
  }
}

function tell({ id, name, intake }: Runner): void {
  print(`${safe(name, process.stdout)} is ${intake.state} (epoch ${intake.epoch})`)
  if (intake.state !== 'draining') return
  note(`Deadline ${timeText(intake.deadlineAt)}. Next: windlass runners plan ${id} shows what it waits for`)
}
