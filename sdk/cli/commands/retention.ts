import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { Failure } from '../failure.ts'
import { groupCommand } from '../from-table.ts'
import { printAnswer } from '../row-answer.ts'
import { does } from '../session.ts'
import { note } from '../terminal.ts'

/** `retention update`: days as numbers, and `all` for what is a null. */
export function addRetention(program: Command): void {
  addUpdate(groupCommand(program, 'retention'))
}

const UPDATE_HELP = `
What is not given stays. What is older is deleted for good, by each hour, an hour after the change at the earliest.
  windlass retention update --runs 90 --deliveries 30
  windlass retention update --runs all`

interface UpdateFlags {
  runs?: string
  deliveries?: string
}

function addUpdate(group: Command): void {
  const command = group
    .command('update')
    .description(ops.retention.update.summary)
    .option('--runs <days>', 'after the end of a run, its input, output and events are deleted; all: never')
    .option('--deliveries <days>', 'after it has come in, a delivery is deleted; all: never')
    .addHelpText('after', UPDATE_HELP)
  does(command, async (session, _positional, options) => {
    const flags = options as UpdateFlags
    const ask = { runsDays: daysOf('--runs', flags.runs), deliveriesDays: daysOf('--deliveries', flags.deliveries) }
    if (ask.runsDays === undefined && ask.deliveriesDays === undefined)
      throw new Failure('Nothing was said that is to change.', 'windlass retention update --runs 90')
    const answer = await session.client.retention.update(ask)
    await session.answer(answer, async () => {
      await printAnswer(ops.retention.get.cli, answer, {})
      if (answer.retention.actsAt !== null) note('What is older is deleted for good from that moment on.')
    })
  })
}

function daysOf(flag: string, given: string | undefined): number | null | undefined {
  if (given === undefined) return undefined
  if (given === 'all') return null
  const days = Number(given)
  if (given.trim() === '' || !Number.isInteger(days) || days < 1)
    throw new Failure(`${flag} takes a whole number of days, or all; not \`${given}\`.`, `${flag} 90`)
  return days
}
