// The transitions of the contract, each seen in a real run, and no other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { assertMove, mayMove, RUN_STATUSES, SUSPENDED, type RunStatus } from '@windlass/shared/model/run.ts'
import type { Node } from '../programs/durable/interpreter/ast.ts'
import { ensurePool } from '../_kit/agents.ts'
import * as ast from '../_kit/ast.ts'
import { begin, durableInstance, isEvicted, isNow, questionsOf } from '../_kit/durable.ts'
import { movesOf } from '../_kit/moves.ts'
import { deploy, ended, hasSaid, programFiles, trigger, wholeLog } from '../_kit/runs.ts'

/** Written down once more from the contract, so that a slip in the table is seen. */
const CONTRACT: Record<RunStatus, RunStatus[]> = {
  queued: ['pending', 'failed', 'cancelling'],
  pending: ['running', 'cancelling', 'queued', 'failed'],
  running: ['completed', 'failed', ...SUSPENDED, 'cancelling', 'queued'],
  sleeping: ['running', 'failed', 'queued', 'cancelling'],
  awaiting_input: ['running', 'failed', 'queued', 'cancelling'],
  waiting_for_child: ['running', 'failed', 'queued', 'cancelling'],
  cancelling: ['cancelled'],
  completed: [],
  failed: [],
  cancelled: [],
}

const durable = durableInstance()
const { client, folder } = durable
const HOUR_MS = 3_600_000
const begun: string[] = []

async function starts(workflow: string, program: Node): Promise<string> {
  const id = await begin(durable, workflow, program)
  begun.push(id)
  return id
}

async function isCancelledWhen(status: RunStatus, id: string): Promise<void> {
  await isNow(client(), id, status)
  await client().runs.cancel({ run: id })
  await isNow(client(), id, 'cancelled')
}

test('a run that ends well goes through each way to wait', async () => {
  const id = await starts('parked', ast.seq(ast.sleep(1000), ast.ask('moves'), ast.child(ast.sleep(1000))))
  const [input] = await questionsOf(client(), id)
  await isNow(client(), id, 'awaiting_input')
  await client().inputs.respond({ input: input!.id, answer: 1 })
  await isNow(client(), id, 'completed')
})

test('a run that throws fails, and one that crashes is queued again', async () => {
  await isNow(client(), await starts('parked', ast.fail('no')), 'failed')
  await isNow(client(), await starts('parked', ast.crash()), 'completed')
})

test('a run is cancelled from every status', async () => {
  await nobodyServes('moves-idle')
  await isCancelledWhen('queued', await starts('moves-idle', ast.step('a')))
  await isCancelledWhen('sleeping', await starts('parked', ast.sleep(HOUR_MS)))
  await isCancelledWhen('awaiting_input', await starts('replayed', ast.ask('moves')))
  await isCancelledWhen('waiting_for_child', await starts('parked', ast.child(ast.sleep(HOUR_MS))))
  const computing = await starts('parked', ast.seq(ast.log('begun'), ast.gate(`${folder()}/never`)))
  await hasSaid(client(), computing, 'log.stdout', 'begun')
  await isCancelledWhen('running', computing)
})

test('a run that waits fails when its whole time is over, and starts again from the top when it was blocked', async () => {
  const slug = 'moves-wall'
  await durable.interpreter({ slug, pool: 'replayed', timeout: { wall: '3s' } })
  for (const program of [ast.sleep(HOUR_MS), ast.ask('wall'), ast.child(ast.sleep(HOUR_MS))]) {
    const { error } = await isNow(client(), await starts(slug, program), 'failed')
    assert.equal(error?.code, 'RUN_TIMED_OUT')
  }
  await deploy(client(), programFiles('durable/random', { slug: 'random', pool: 'replayed', timeout: '1m' }))
  for (const status of SUSPENDED) {
    const id = await trigger(client(), 'random', { waits: status })
    begun.push(id)
    await isNow(client(), id, status)
    await isEvicted(durable, id)
    if (status === 'awaiting_input')
      await client().inputs.respond({ input: (await questionsOf(client(), id))[0]!.id, answer: 1 })
    await hasSaid(client(), id, 'run.blocked')
    await client().runs.restart({ run: id })
    await hasSaid(client(), id, 'run.restarted')
    await client().runs.cancel({ run: id })
    await ended(client(), id)
  }
})

test('a run whose agent does not answer is queued again, is cancelled while it is offered, or fails', async () => {
  const agent = await durable.join({ name: 'frozen', pool: 'frozen' })
  await durable.interpreter({ slug: 'frozen', pool: 'frozen' })
  await durable.interpreter({ slug: 'frozen-wall', pool: 'frozen', timeout: { wall: '2s' } })
  const whileFrozen = async (act: () => Promise<unknown>) => {
    // It asks for work: its request is held.
    await ended(client(), await starts('frozen', ast.step('it asks for work')))
    agent.process().child.kill('SIGSTOP')
    await act().finally(() => agent.process().child.kill('SIGCONT'))
  }
  await whileFrozen(async () => {
    await isNow(client(), await starts('frozen', ast.step('a')), 'pending')
    const id = begun.at(-1)!
    await isNow(client(), id, 'queued')
    await client().runs.cancel({ run: id })
  })
  await whileFrozen(async () => isCancelledWhen('pending', await starts('frozen', ast.step('a'))))
  await whileFrozen(async () => isNow(client(), await starts('frozen-wall', ast.step('a')), 'failed'))
  await nobodyServes('moves-queue', { timeout: { queue: '1s' } })
  await isNow(client(), await starts('moves-queue', ast.step('a')), 'failed')
})

test('these runs have made every move of the contract', async () => {
  const seen = new Set<string>()
  for (const id of begun) for (const [from, to] of movesOf(await wholeLog(client(), id))) seen.add(`${from} → ${to}`)
  const contract = RUN_STATUSES.flatMap((from) => CONTRACT[from].map((to) => `${from} → ${to}`))
  assert.deepEqual([...seen].toSorted(), contract.toSorted())
})

test('a move that is not in the contract is refused', () => {
  for (const from of RUN_STATUSES) {
    for (const to of RUN_STATUSES) {
      const isAllowed = CONTRACT[from].includes(to)
      assert.equal(mayMove(from, to), isAllowed, `${from} → ${to}`)
      if (!isAllowed) assert.throws(() => assertMove(from, to), /never moves/)
    }
  }
})

async function nobodyServes(slug: string, descriptor: object = {}): Promise<void> {
  await ensurePool(client(), slug)
  await durable.interpreter({ slug, pool: slug, ...descriptor })
}
