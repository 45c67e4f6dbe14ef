// However the words of a program are put into batches, its journal is the same.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { EntryIdentity, JournalOp } from '@windlass/shared/wire/journal.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { anAgent, end, type Link, returned, start, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinator, type TestCoordinator } from '../../_kit/coordinator.ts'
import { identity, said } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun, next } = journalCrew(() => ({ c, agent, link }), 'any')

/** A call. `from`: the first attempt that makes it. `ends`: the attempt in which the step ends; 3: none. */
interface Made {
  isStep: boolean
  inside: Made[]
  from: 1 | 2
  ends: 1 | 2 | 3
}

const made = (depth: number): fc.Arbitrary<Made> =>
  fc.record({
    // Many of what is most easily written wrong: steps that one attempt opens and the next one ends, at another place.
    isStep: fc.constantFrom(true, true, false),
    inside: depth === 0 ? fc.constant<Made[]>([]) : fc.array(made(depth - 1), { maxLength: 3 }),
    from: fc.constantFrom(1, 1, 2),
    ends: fc.constantFrom(1, 2, 2, 3),
  })
const programs = fc.array(made(2), { minLength: 1, maxLength: 5 })

/** What the runtime says of the calls of two attempts, the second of which takes over what the first one has left. */
function commandsOf(program: readonly Made[]): [JournalOp[], JournalOp[]] {
  const known = new Map<string, { n: number; isDone: boolean }>()
  let last = 0

  function attempted(attempt: 1 | 2): JournalOp[] {
    const ops: JournalOp[] = []
    let called = 0
    let order = 0
    const give = (n: number) => ops.push({ op: 'deliver', list: [[++order, n, called, 0]] })

    function close(entry: EntryIdentity): void {
      ops.push({ op: 'close', entry, state: 'done', result: `"${attempt}"` })
      known.set(entry.name, { n: entry.n, isDone: true })
      give(entry.n)
    }

    function call({ isStep, inside, from, ends }: Made, parent: string, at: number): void {
      const name = `${parent}/${at}`
      const before = known.get(name)
      if (from > attempt || (isStep && inside.length === 0 && !before && ends > attempt)) return
      const entry = identity(before?.n ?? ++last, isStep ? 'step' : 'sleep', { parent, name, position: ++called })
      if (before) ops.push({ op: 'adopt', n: before.n, position: called })
      if (before?.isDone) return void give(before.n)
      known.set(name, { n: entry.n, isDone: false })
      if (!isStep) {
        if (!before) ops.push({ op: 'open', entry, ask: { for: 'sleep', ms: 3_600_000 } })
        return
      }
      if (inside.length > 0 && !before) ops.push({ op: 'open', entry, ask: { for: 'step' } })
      for (const [position, each] of inside.entries()) call(each, name, position)
      if (ends <= attempt) close(entry)
    }

    for (const [position, each] of program.entries()) call(each, '', position)
    return ops
  }

  return [attempted(1), attempted(2)]
}

/** Says them in batches: `cuts` tells after which of them one ends. */
async function say(offer: Offer, ops: readonly JournalOp[], cuts: readonly boolean[]): Promise<void> {
  let seq = 2
  let batch: JournalOp[] = []
  for (const [at, op] of ops.entries()) {
    batch.push(op)
    if (!cuts[at % cuts.length] && at < ops.length - 1) continue
    assert.equal((await link.report(offer, seq, ...batch.map((one) => said(one)))).kind, 'ack')
    seq += batch.length
    batch = []
  }
}

async function journalAfter(
  commands: readonly [JournalOp[], JournalOp[]],
  cuts: readonly boolean[],
): Promise<object[]> {
  const first = await begun()
  await say(first, commands[0], cuts)
  await link.report(first, commands[0].length + 2, end({ how: 'killed', signal: 'SIGKILL' }, 1))
  const second = await next(first.run)
  await link.report(second, 1, start())
  await say(second, commands[1], cuts)
  const rows = await c.db`
    select n, attempt, position, parent, name, state, result, delivered, after, idle
    from journal
    where run_id = ${first.run}
    order by n`
  await link.report(second, commands[1].length + 2, end(returned(null), 1))
  return [...rows]
}

test('a journal does not depend on the batches in which it was told', async (t) => {
  // As a busy agent sends them, all at once, and in every other way.
  const cuts = fc.oneof(fc.constant([false]), fc.array(fc.boolean(), { minLength: 1, maxLength: 12 }))
  await fc.assert(
    fc.asyncProperty(programs, cuts, async (program, cuts) => {
      const commands = commandsOf(program)
      assert.deepEqual(await journalAfter(commands, cuts), await journalAfter(commands, [true]))
    }),
    { numRuns: amount({ test: 15, storm: 300 }), ...repeatable(t) },
  )
})
