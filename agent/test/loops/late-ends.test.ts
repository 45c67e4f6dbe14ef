// What ended while its agent stood still ended then, and not when the agent goes on: its time may be over by now.
import assert from 'node:assert/strict'
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { standStillUntil } from '../_kit/stand-still.ts'
import { withAgent } from '../_kit/with-agent.ts'

const ENDINGS = {
  returned: `frame('returned', 'null')`,
  threw: `frame('threw', JSON.stringify({ name: 'Error', message: 'mine' }))`,
} as const

for (const [how, says] of Object.entries(ENDINGS))
  withAgent(`'${how}' is of the time at which the program said it`, async ({ fake, folder }) => {
    const [go, said] = [path.join(folder, 'go'), path.join(folder, 'said')]
    const program = await aHandMade(`
      fs.writeSync(1, 'half a line')
      say('executes')
      while (!fs.existsSync(${JSON.stringify(go)})) await new Promise((resolve) => setTimeout(resolve, 5))
      ${says}
      fs.writeFileSync(${JSON.stringify(`${said}.part`)}, String(Date.now()))
      fs.renameSync(${JSON.stringify(`${said}.part`)}, ${JSON.stringify(said)})
      process.exit(0)`)
    const placement = fake.offer(program)
    await until('it executes', () => linesOf(placement).includes('executes'))
    writeFileSync(go, '')
    standStillUntil(() => existsSync(said))
    const saidAt = Number(readFileSync(said, 'utf8'))
    standStillUntil(() => Date.now() > saidAt + 100)
    assert.equal((await fake.ending(placement)).how, how)
    const times = placement.entries.slice(-2).map(([, at]) => at)
    assert.equal(linesOf(placement).at(-1), 'half a line')
    assert.ok(
      times.every((at) => at <= saidAt),
      `${times.map((at) => at - saidAt).join()} ms after it was said`,
    )
  })
