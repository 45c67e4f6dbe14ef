import type { Command } from 'commander'
import type { DeliverySummary } from '@windlass/shared/model/delivery.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { tellNextPage } from '../next-page.ts'
import { does } from '../session.ts'
import { printTable } from '../table.ts'
import { cellTime, note, print, safe } from '../terminal.ts'

/** `deliveries`: what came in at webhooks and connections. */
export function addDeliveries(program: Command): void {
  const group = groupCommand(program, 'deliveries')
  addList(group)
  addPayload(group)
  addReplay(group)
}

const LIST_HELP = `
  windlass deliveries list --workflow hello
  windlass deliveries list --outcome unverified --created-after 2h`

function addList(group: Command): void {
  does(rowCommand(group, 'list', ops.deliveries.list, LIST_HELP), async (session, positional, options) => {
    const answer = await session.client.deliveries.list(await rowArgs(ops.deliveries.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.deliveries.map((d) => [
        d.id,
        cellTime(d.receivedAt),
        d.source.name ?? d.source.id,
        safe(d.event ?? '-', process.stdout),
        d.outcome,
        runsOf(d) || safe(d.reason ?? '', process.stdout),
      ])
      await printTable(['DELIVERY', 'RECEIVED?', 'AT', 'EVENT?', 'OUTCOME', 'RUNS, OR WHY NOT'], rows)
      if (rows.length === 0) note('No deliveries. Next: windlass webhooks get <workflow>')
      tellNextPage(answer.nextCursor)
    })
  })
}

function runsOf({ matches }: Pick<DeliverySummary, 'matches'>): string {
  return matches.flatMap(({ runId }) => runId ?? []).join(' ')
}

function addPayload(group: Command): void {
  const command = group
    .command('payload')
    .description(ops.deliveries.payload.summary)
    .argument('<delivery>', 'its id')
    .addHelpText('after', '\n  windlass deliveries payload dlv_… > payload.json')
  does(command, async (session, [delivery = '']) => {
    const response = await session.client.deliveries.payload({ delivery })
    const bytes = Buffer.from(await response.arrayBuffer())
    const answer = { contentType: response.headers.get('content-type'), base64: bytes.toString('base64') }
    await session.answer(answer, () => void process.stdout.write(bytes))
  })
}

function addReplay(group: Command): void {
  const command = rowCommand(group, 'replay', ops.deliveries.replay)
  does(command, async (session, positional, options) => {
    const args = await rowArgs(ops.deliveries.replay, positional, options)
    const { delivery } = await session.client.deliveries.replay(args)
    await session.answer({ delivery }, () => {
      print(`${delivery.id}: ${delivery.outcome} ${runsOf(delivery) || (delivery.reason ?? '')}`.trimEnd())
    })
  })
}
