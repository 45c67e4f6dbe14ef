import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createByAge } from '../../limits/by-age.ts'

const acts = fc.array(fc.tuple(fc.integer({ min: 0, max: 8 }), fc.boolean()), { maxLength: 300 })

test('the first and the last are those of a Map, whatever was set and deleted before', () => {
  fc.assert(
    fc.property(acts, (all) => {
      const byAge = createByAge<number, number>()
      const map = new Map<number, number>()
      for (const [i, [key, isSet]] of all.entries()) {
        if (isSet) byAge.set(key, i)
        else byAge.delete(key)
        if (isSet) map.set(key, i)
        else map.delete(key)
        assert.deepEqual([byAge.first(), byAge.last(), byAge.size], [[...map][0], [...map].at(-1), map.size])
      }
      assert.deepEqual([...byAge.all()], [...map])
    }),
  )
})
