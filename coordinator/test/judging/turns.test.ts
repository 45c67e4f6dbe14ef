import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { createJudge } from '../../judging/judge.ts'
import { schemaOf } from '../../judging/schema.ts'

const log = createLog({ process: 'test' }, 'error')
const VALUES = 20

/** In how many turns of the event loop these were judged that came in one. */
async function turnsOf(numbers: number): Promise<number> {
  const judge = createJudge({ log })
  const shape = (i: number) => ({ type: 'object', properties: { [`k${i}`]: { type: 'number' } }, required: [`k${i}`] })
  const union = { anyOf: [...Array.from({ length: 40 }, (_, i) => shape(i)), { type: 'number' }] }
  const schema = schemaOf('derived', { type: 'array', items: union })
  const value = { text: JSON.stringify(Array.from({ length: numbers }, () => 1)) }
  let now = 0
  const turn = () => {
    now++
    next = setImmediate(turn)
  }
  let next = setImmediate(turn)
  const turns = new Set<number>()
  const judged = async () => {
    assert.deepEqual(await judge.judge(schema, value, { root: 'input', org: 'a' }), { is: 'fits' })
    turns.add(now)
  }
  await Promise.all(Array.from({ length: VALUES }, judged))
  clearImmediate(next)
  assert.equal(judge.awake(), 0)
  await judge.close()
  return turns.size
}

test('values that take a while are judged one in a turn of the event loop, however many come in one', async () => {
  assert.equal(await turnsOf(400), VALUES)
})

test('small ones are judged at once', async () => {
  assert.equal(await turnsOf(10), 1)
})
