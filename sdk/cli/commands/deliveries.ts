import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { groupCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { print } from '../terminal.ts'

/** `deliveries payload`: the bytes as they came; on a terminal what is safe to look at. */
export function addDeliveries(program: Command): void {
  addPayload(groupCommand(program, 'deliveries'))
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
    await session.answer(answer, () => show(bytes))
  })
}

/** A stranger may have written them, and a terminal obeys what it finds in them. Files and pipes get them untouched. */
function show(bytes: Buffer): void {
  if (process.stdout.isTTY) print(bytes.toString())
  else process.stdout.write(bytes)
}
