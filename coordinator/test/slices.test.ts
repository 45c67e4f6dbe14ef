import assert from 'node:assert/strict'
import { test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { turnInLine } from '../slices.ts'

test('an org with one piece of work does not wait for all pieces of another', async () => {
  const [many, few] = [newId('org'), newId('org')]
  const passed: string[] = []
  const piece = async (org: typeof many | undefined, what: string) => {
    await turnInLine(org)
    passed.push(what)
  }
  const pieces = Array.from({ length: 100 }, () => piece(many, 'many'))
  await Promise.all([...pieces, piece(few, 'few'), piece(undefined, 'all')])
  const [ofFew, ofAll] = [passed.indexOf('few'), passed.indexOf('all')]
  assert.ok(ofFew <= 3 && ofAll <= 3, `pieces ${ofFew} and ${ofAll} of ${passed.length}`)
})

test('each piece has a turn of the event loop of its own', async () => {
  let turns = 0
  const count = () => {
    turns++
    next = setImmediate(count)
  }
  let next = setImmediate(count)
  await Promise.all(Array.from({ length: 20 }, () => turnInLine(newId('org'))))
  clearImmediate(next)
  assert.ok(turns >= 19, `${turns} turns`)
})
