import { Option } from 'commander'
import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Webhook } from '@windlass/shared/model/webhook.ts'
import { lengthFlag } from '../duration-flag.ts'
import { groupCommand, rowCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { cellTime, note, print } from '../terminal.ts'

/** `webhooks`: where other systems start a workflow. */
export function addWebhooks(program: Command): void {
  const group = groupCommand(program, 'webhooks')
  addGet(group)
  addRotate(group)
  addSet(group)
}

function addGet(group: Command): void {
  does(rowCommand(group, 'get', ops.webhooks.get), async (session, [workflow = '']) => {
    const { webhook } = await session.client.webhooks.get({ workflow })
    await session.answer({ webhook }, () => tell(workflow, webhook))
  })
}

function tell(workflow: string, webhook: Webhook): void {
  print(webhook.url)
  note(`${webhook.auth} in ${webhook.header}; runs get the ${webhook.input}`)
  if (webhook.urlNote !== null) note(webhook.urlNote)
  if (webhook.rotatedAt === null) note(`It has no secret yet. Next: windlass webhooks rotate ${workflow}`)
  else note(`Its secret is of ${cellTime(webhook.rotatedAt)}`)
}

const OVERLAP = [
  '--overlap <duration>',
  'how long the secret of before serves as well, such as 1h; default 1d',
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
  windlass webhooks rotate hello --overlap 0s     ends the secret of before at once
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
      if (previousSecretUntil !== null) note(`The one of before serves until ${cellTime(previousSecretUntil)}`)
    })
  })
}

function addSet(group: Command): void {
  const command = group
    .command('set')
    .description(ops.webhooks.set.summary)
    .argument('<workflow>', 'slug or id')
    .addOption(
      new Option('--auth <way>', 'a signature over the body, or the secret itself')
        .choices(['hmac', 'bearer'])
        .makeOptionMandatory(),
    )
    .addHelpText('after', '\n  windlass webhooks set hello --auth bearer')
  does(command, async (session, [workflow = ''], options) => {
    const { webhook } = await session.client.webhooks.set({ workflow, auth: options['auth'] as Webhook['auth'] })
    await session.answer({ webhook }, () => tell(workflow, webhook))
  })
}
