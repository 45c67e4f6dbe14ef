import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { lengthFlag } from '../duration-flag.ts'
import { groupCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { cellTime, note, print } from '../terminal.ts'

/** `webhooks rotate`: the secret alone on standard output, and the overlap as a length of time. */
export function addWebhooks(program: Command): void {
  addRotate(groupCommand(program, 'webhooks'))
}

const OVERLAP = [
  '--overlap <duration>',
  'how long the secret of before serves as well, such as 1h; 0s ends it and all former ones; default 1d',
] as const

/** In milliseconds; undefined: as the service has it. */
export function overlapOf(options: Record<string, unknown>, example: string): number | undefined {
  const given = options['overlap'] as string | undefined
  return given === undefined ? undefined : lengthFlag('--overlap', given, example)
}

export function withOverlap(command: Command): Command {
  return command.option(...OVERLAP)
}

const ROTATE_HELP = `
The secret is printed once, alone on standard output:
  windlass webhooks rotate hello
  windlass webhooks rotate hello --overlap 0s     ends the secret of before and all former ones at once
It takes a session: an API key makes no secrets.`

function addRotate(group: Command): void {
  const command = withOverlap(
    group.command('rotate').description(ops.webhooks.rotate.summary).argument('<workflow>', 'slug or id'),
  ).addHelpText('after', ROTATE_HELP)
  does(command, async (session, [workflow = ''], options) => {
    const overlapMs = overlapOf(options, 'webhooks rotate … --overlap 1h')
    const answer = await session.client.webhooks.rotate({ workflow, overlapMs })
    await session.answer(answer, () => {
      print(answer.secret)
      note(`The secret of ${answer.webhook.url}. It is not shown again.`)
      const { previousSecretUntil } = answer.webhook
      if (previousSecretUntil !== null) note(`Former ones serve until ${cellTime(previousSecretUntil)} at the latest`)
    })
  })
}
