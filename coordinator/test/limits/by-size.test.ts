import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { createBySize } from '../../limits/by-size.ts'

const acts = fc.array(fc.tuple(fc.integer({ min: 0, max: 20 }), fc.option(fc.integer({ min: 1, max: 1 << 30 }))))

test('the largest is found to within a ninth, whatever was set and removed before', () => {
  fc.assert(
    fc.property(acts, (all) => {
      const bySize = createBySize()
      const sizes = new Map<string, number>()
      for (const [n, size] of all) {
        const id = String(n)
        if (size === null) bySize.remove(id)
        else bySize.set(id, size)
        if (size === null) sizes.delete(id)
        else sizes.set(id, size)
        const found = bySize.largest()
        if (sizes.size === 0) assert.equal(found, undefined)
        else assert.ok(sizes.get(found!)! * 1.1 >= Math.max(...sizes.values()))
      }
    }),
  )
})
