// A coordinator dies, a connection is cut or a lock is not had in time: the agent says its hello again.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Instance } from '@windlass/shared/wire/agent.ts'
import type { Tx } from '../../db/client.ts'
import { aHello, anAgent, anInstance, type Link, takeNext, type TestAgent } from '../_kit/agent.ts'
import { ageLeases, SWEEPING } from '../_kit/ageing.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
import { silence } from '../_kit/silence.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
  other = await c.another()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

interface Cut {
  name: string
  lock: (tx: Tx, runner: string) => PromiseLike<unknown>
  /** The statement that is cut off. */
  like: string
}

const CUTS: Cut[] = [
  {
    name: 'before a drain is lifted',
    lock: (tx, runner) => tx`select from runner_intake where runner_id = ${runner} for update`,
    like: '%from runner_intake%for update%',
  },
  {
    name: 'before losses are explained',
    lock: (tx) => tx`lock table run_losses in access exclusive mode`,
    like: '%update run_losses%',
  },
]

/** Says hello as this start. The coordinator lets it in and fails then. */
async function isCutOff(agent: TestAgent, instance: Instance, { lock, like }: Cut): Promise<void> {
  await c.db.begin(async (tx) => {
    await lock(tx, agent.id)
    const link = await agent.dial()
    link.send(aHello({ instance }))
    await untilBlocked(c.db, like)
    await c.db`
      select pg_cancel_backend(pid)
      from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query like ${like}`
    assert.equal((await link.closed()).code, 1013)
  })
  const [row] = await c.db`select instance from runners where id = ${agent.id}`
  assert.equal(row?.instance, instance.id)
}

const nextOf = ({ id, host }: Instance, more: Partial<Instance> = {}) => anInstance({ previous: [id], host, ...more })

/** Answers what its runner is then. */
async function leave(link: Link): Promise<string> {
  link.send({ t: 'leave', reason: 'the agent is being stopped', deadlineMs: 60_000 })
  const { intake } = await link.next('intake')
  link.close()
  return intake.state
}

/** An agent that leaves in good order. */
async function left(): Promise<{ agent: TestAgent; instance: Instance }> {
  const [agent, instance] = [await anAgent(c), anInstance()]
  const link = await agent.connect([], { instance })
  assert.equal(await leave(link), 'drained')
  return { agent, instance }
}

for (const cut of CUTS)
  test(`the drain of an agent ends with its next start, also where its hello is cut off ${cut.name}`, async () => {
    const { agent, instance } = await left()
    const next = nextOf(instance)
    await isCutOff(agent, next, cut)
    const again = agent.at(other)
    const link = await again.dial()
    link.send(aHello({ instance: next }))
    assert.equal((await link.next('welcome')).intake?.state, 'open')
    const { id } = await aRun(c, { workflow: 'any' })
    assert.equal((await takeNext(again, link)).run, id)
    await c.call(ops.runs.cancel, { run: id })
    // What it says of itself counts from then on.
    await leave(link)
    const third = await agent.connect([], { instance: next })
    assert.notEqual((await third.heartbeat(1)).intake?.state, 'open')
    agent.close()
  })

for (const cut of CUTS)
  for (const boot of ['this boot', 'another boot'])
    test(`a restart on ${boot} counts as one, also where its hello is cut off ${cut.name}`, async (t) => {
      const [agent, instance] = [await anAgent(c), anInstance({ boot: 'this boot' })]
      const link = await agent.connect([], { instance })
      const runs = [await aRun(c, { workflow: 'any' }), await aRun(c, { workflow: 'any' })]
      t.after(() => Promise.all(runs.map(({ id }) => c.call(ops.runs.cancel, { run: id }))))
      await takeNext(agent, link)
      await takeNext(agent, link)
      // Of one the lease runs out, and the other one is found to be gone by the hello.
      const silent = runs[0]!.id
      await ageLeases(c, silent)
      await until('the lease to run out', async () => (await runOf(c, silent)).lost)
      await leave(link)
      await untilNoted(c, agent)
      await silence(c, agent)
      const next = nextOf(instance, { boot })
      await isCutOff(agent, next, cut)
      await agent.at(other).connect([], { instance: next })
      for (const { id } of runs) {
        assert.equal((await runOf(c, id)).lost?.what, boot === 'this boot' ? 'daemon' : 'host')
        const [used] = await c.db`select crashes, fences from runs where id = ${id}`
        assert.deepEqual({ ...used }, { crashes: 1, fences: 0 })
      }
    })
