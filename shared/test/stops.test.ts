import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ops } from '../ops/index.ts'
import { type AnyOp, isForCallers } from '../ops/op.ts'

const rows = Object.values(ops)
  .flatMap((group) => Object.values(group) as AnyOp[])
  .filter((row) => isForCallers(row) && row.method !== 'GET')
const nameOf = ({ id }: AnyOp) => id.slice(id.indexOf('.') + 1)

/** What the names of acts begin with that end or hold something. */
const ENDING = /^(revoke|cancel|bulkCancel|disable|cordon|drain|deregister|rotate|setSecret)/

test('whatever ends or holds something by its name says so, and so has a turn of its own', () => {
  const named = rows.filter((row) => ENDING.test(nameOf(row)))
  assert.deepEqual(
    named.filter(({ stops }) => stops !== true).map(({ id }) => id),
    [],
  )
  assert.ok(named.length > 9)
})

test('what can be paused says so where it is changed', () => {
  const pausing = rows.filter((row) => nameOf(row) === 'update' && 'enabled' in row.input.shape)
  assert.deepEqual(
    pausing.map(({ id, stops }) => [id, stops]),
    [
      ['schedules.update', { enabled: false }],
      ['connections.update', { enabled: false }],
    ],
  )
})
