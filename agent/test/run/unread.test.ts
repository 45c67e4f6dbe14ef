// What a program is given and does not read is kept by the coordinator, which says it again.
import assert from 'node:assert/strict'
import test from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import { AgentRun } from '../../run/agent-run.ts'
import type { RunningProgram } from '../../run/program/program.ts'
import { aStage } from './programs.ts'

const MIB = 1024 * 1024
const given = (n: number): Completion => ({ n, state: 'done', result: `"${'x'.repeat(MIB)}"` })
const numbers = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

test('a program that does not read is given some 32 MiB, and then nothing', async (t) => {
  const stage = await aStage(t)
  const begun = Promise.withResolvers<void>()
  const program = stage.processes.run(await stage.start('busy-loop.mjs', { timeoutMs: 600_000 }), () => begun.resolve())
  await begun.promise
  const taken = numbers(100).flatMap((n) => {
    const news = program.news([given(n)])
    if (news.length > 0) program.wake(news)
    return news
  })
  assert.ok(taken.length >= 32 && taken.length <= 34, `${taken.length} MiB were taken`)
  program.kill('shutdown')
  await program.done
})

test('so much is kept for a program that has no process yet', () => {
  const agentRun = new AgentRun({ run: newId('run'), epoch: 1 } as AgentRun['offer'], 60_000)
  agentRun.answer('ours')
  for (const n of numbers(100)) agentRun.wake([given(n)])
  let mib = 0
  const program = { news: (news: Completion[]) => news, wake: (news: Completion[]) => (mib = news.length) }
  agentRun.attach(program as unknown as RunningProgram)
  assert.ok(mib >= 32 && mib <= 33, `${mib} MiB were kept`)
})
