import assert from 'node:assert/strict'
import test from 'node:test'
import { aStage } from '../programs.ts'

const PROGRAMS = 6

test('of programs that come at once each is started in a turn of the event loop of its own', async (t) => {
  const stage = await aStage(t)
  const start = await stage.start('takes-time.mjs', { inputText: '{"ms":1}' })
  let turn = 0
  let ticking: NodeJS.Immediate
  const tick = () => {
    turn += 1
    ticking = setImmediate(tick)
  }
  tick()
  t.after(() => clearImmediate(ticking))
  const programs = Array.from({ length: PROGRAMS }, () => stage.processes.run(start, async () => {}))
  const turns = await Promise.all(
    programs.map(async (program) => {
      await program.started
      return turn
    }),
  )
  assert.equal(new Set(turns).size, PROGRAMS, String(turns))
  for (const { how } of await Promise.all(programs.map(({ done }) => done))) assert.equal(how, 'returned')
})
