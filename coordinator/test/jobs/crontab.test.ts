import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseCrontab } from 'graphile-worker'
import { CRONTAB } from '../../jobs/crontab.ts'

test('cleanings hold one worker at most, however long they take', () => {
  const items = parseCrontab(CRONTAB)
  assert.ok(items.length > 10)
  for (const { task, options } of items) assert.equal(options.queueName, 'cleaning', task)
})
