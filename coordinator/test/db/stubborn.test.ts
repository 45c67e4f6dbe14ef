import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createStubborn } from '../../db/stubborn.ts'

test('failures while the server takes nothing of anybody are not counted, also when it takes something later', () => {
  const stubborn = createStubborn({ times: 3, ms: 0 })
  const fails = () => stubborn.failed('one')
  const others = () => stubborn.committed(() => ['other'])
  for (let i = 0; i < 5; i++) assert.equal(fails(), false)
  others()
  assert.equal(fails(), false)
  others()
  assert.equal(fails(), true)
})
