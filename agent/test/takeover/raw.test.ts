// What a program writes past JavaScript's streams is not told again to the agent that takes it back.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { writeFileSync } from 'node:fs'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { abandoned } from './abandoned.ts'

after(endAgentProcesses)

const RAW = ['raw 1', 'raw 2', 'raw 3']
const PRINTS = ['line 1', 'line 2', 'line 3', 'line 4']

test('what it prints next is all there', async (t) => {
  const { fake, placement, pid, takeOver } = await abandoned(
    t,
    `
    const { existsSync, writeSync } = process.getBuiltinModule('node:fs')
    const told = async (name) => { while (!existsSync(name)) await new Promise((resolve) => setTimeout(resolve, 20)) }
    console.log(String(process.pid))
    await told('write')
    for (const line of ${JSON.stringify(RAW)}) writeSync(1, line + '\\n')
    await told('print')
    for (const line of ${JSON.stringify(PRINTS)}) console.log(line)`,
    {},
    async (on) => {
      writeFileSync(`/proc/${on.pid}/cwd/write`, '')
      await until('what it writes', () => linesOf(on.placement).length > RAW.length)
    },
  )
  await takeOver()
  writeFileSync(`/proc/${pid}/cwd/print`, '')
  assert.equal((await fake.ending(placement)).how, 'returned')
  assert.deepEqual(linesOf(placement).slice(1), [...RAW, ...PRINTS])
})
