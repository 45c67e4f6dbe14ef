import assert from 'node:assert/strict'
import fs, { rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { test } from 'node:test'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS, whatIsLost } from '@windlass/shared/model/lost-reasons.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { AgentRun, type Fate } from '../../run/agent-run.ts'
import { createAgentRuns } from '../../run/agent-runs.ts'
import { type ExecuteNeeds, follow } from '../../run/execute.ts'
import type { RunningProgram } from '../../run/program/program.ts'
import { aLog } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { kindsOf } from '../_kit/durable.ts'
import type { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { refuse } from '../_kit/http.ts'
import { withAgent } from '../_kit/with-agent.ts'

/** A file takes the place of a folder when the run is taken: earlier, and the checks of the host would see it. */
function loseAtFetch(fake: FakeCoordinator, folder: string): void {
  fake.onBundle = () => {
    rmSync(folder, { recursive: true })
    writeFileSync(folder, '')
    return false
  }
}

withAgent(
  'a bundle that this host cannot keep puts the run off, and nothing of it has begun',
  async ({ fake, folder }) => {
    loseAtFetch(fake, path.join(folder, 'bundles'))
    const placement = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
    assert.match(ending.reason, /ENOTDIR/)
    assert.deepEqual(kindsOf(placement), ['end'])
  },
)

withAgent(
  'a program that gets no workspace has not begun',
  async ({ fake, folder }) => {
    loseAtFetch(fake, path.join(folder, 'workspaces'))
    const placement = fake.offer(await aProgram(`return 1`))
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
    assert.deepEqual(kindsOf(placement), ['end'])
  },
  { env: { WINDLASS_AGENT_SPARES: '0' } },
)

withAgent('a program has not begun of which the disk does not take that it may', async ({ fake, context }) => {
  const write = fs.writeSync
  const full = (fd: number, bytes: Buffer, ...rest: number[]) => {
    if (/ o run_\w+ 1 1 0\n/.test(bytes.toString())) throw Object.assign(new Error('ENOSPC: no'), { code: 'ENOSPC' })
    return write(fd, bytes, ...rest)
  }
  context.mock.method(fs, 'writeSync', full)
  syncBuiltinESMExports()
  context.after(syncBuiltinESMExports)
  const placement = fake.offer(await aProgram(`return 1`))
  const ending = await fake.ending(placement)
  context.mock.restoreAll()
  syncBuiltinESMExports()
  assert.ok(ending.how === 'unready' && ending.blame === 'host', JSON.stringify(ending))
  assert.match(ending.reason, /ENOSPC/)
  assert.deepEqual(kindsOf(placement), ['end'])
})

withAgent('a journal that the service does not give is not blamed on the host', async ({ fake }) => {
  fake.journal = (response) => refuse(response, 404, 'NOT_FOUND')
  const placement = fake.offer(await aProgram(`return 1`), { replay: true, journal: { entries: 3, text: null } })
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'unready' && ending.blame === 'service', JSON.stringify(ending))
  assert.deepEqual(kindsOf(placement), ['end'])
})

withAgent(
  'a run that is not confirmed in time goes back, and the agent goes on',
  async ({ fake }) => {
    fake.mute.add('accept')
    const placement = fake.offer(await aProgram(`return 1`))
    assert.deepEqual(await fake.ending(placement), { how: 'unready', reason: LOST_REASONS.unconfirmed })
    fake.mute.delete('accept')
    // Too late: it is another agent's by now.
    fake.send({ t: 'accepted', runs: [[placement.offer.run, placement.offer.epoch]], no: [] })
    assert.equal((await fake.ending(fake.offer(await aProgram(`return 2`)))).how, 'returned')
    assert.deepEqual(kindsOf(placement), ['end'])
  },
  { paces: { acceptMs: 500 } },
)

withAgent('a run that is not confirmed when the agent is stopped goes back', async ({ fake, agent }) => {
  fake.mute.add('accept')
  const placement = fake.offer(await aProgram(`return 1`))
  await until('the accept', () => fake.heard('accept').length > 0)
  agent.stop()
  agent.stop()
  assert.deepEqual(await fake.ending(placement), { how: 'unready', reason: LOST_REASONS.shutdown })
})

withAgent(
  'an agent that is fenced while it fetches the bundle of a run has not begun it',
  async ({ fake }) => {
    const fetched = Promise.withResolvers<ServerResponse>()
    fake.onBundle = (response) => {
      fake.mute.add('heartbeat')
      fetched.resolve(response)
      return true
    }
    const program = await aProgram(`return 1`)
    const placement = fake.offer(program)
    const ending = await fake.ending(placement)
    assert.ok(ending.how === 'unready' && ending.reason.startsWith(LOST_REASONS.fenced), JSON.stringify(ending))
    assert.match(ending.reason, /; 0\.000 of 0\.\d+ MB of its bundle have come in \d+ s$/)
    assert.equal(whatIsLost(ending.reason), 'network')
    assert.deepEqual(kindsOf(placement), ['end'])
    ;(await fetched.promise).end(program.packed)
  },
  { settings: { heartbeatMs: 100, fenceMs: 1000 } },
)

/** What is said of a program that came to this end, after its agent had decided to end it. */
async function saidOf(
  fate: Fate,
  hasStarted: boolean,
  wasTaken = false,
  ending: Ending = { how: 'lost', reason: 'it was ended' },
): Promise<Ending> {
  const agentRun = new AgentRun({ run: 'run_x', epoch: 1, outputBytes: 100 } as Offer, 1000)
  agentRun.end(fate)
  const said: Entry[] = []
  const nothing = () => undefined
  const deps = {
    sleeps: { look: nothing },
    settings: { current: { fenceMs: 1000 } },
    beats: { heldMs: nothing },
    agentRuns: createAgentRuns(),
    processes: { fenceAt: nothing },
    takeover: { watch: nothing },
    secrets: { forget: nothing, rests: nothing },
    parking: { left: nothing },
    activity: { ended: nothing },
    spool: { append: (_run: string, _epoch: number, entries: Entry[]) => void said.push(...entries) },
    hooks: { postRun: nothing },
    log: aLog().log,
  }
  const done = Promise.resolve(ending)
  const program = { done, hasStarted: () => hasStarted, computeMs: () => 0, saidAt: nothing, leftLines: nothing }
  await follow(deps as unknown as ExecuteNeeds, agentRun, program as unknown as RunningProgram, wasTaken)
  const [entry] = said
  assert.ok(entry?.[0] === 'end')
  return entry[2]
}

test('what is cut off before there is a process for it has not begun, and one that was taken back has', async () => {
  for (const fate of ['fenced', 'revoked', 'shutdown'] as const) {
    const reason = LOST_REASONS[fate]
    assert.deepEqual(await saidOf(fate, false), { how: 'unready', reason })
    assert.deepEqual(await saidOf(fate, true), { how: 'lost', reason })
    assert.deepEqual(await saidOf(fate, false, true), { how: 'lost', reason })
  }
})

test('one whose time was over before it was cut off is told as that: it may have undone what it did', async () => {
  const timedOut: Ending = { how: 'timed-out', timeoutMs: 1000 }
  for (const fate of ['fenced', 'revoked', 'shutdown', 'stale'] as const)
    assert.deepEqual(await saidOf(fate, true, false, timedOut), timedOut)
})
