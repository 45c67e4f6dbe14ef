import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ListedTool } from '../../mcp/table.ts'
import { createToolPrinter, STAND_IN, withTools } from '../../mcp/tool-list.ts'

/** Counts how often it is printed. */
function aTool(name: string) {
  const tool = { name, description: 'a … of 🐟', inputSchema: { type: 'object' } }
  const counted = { printed: 0, listed: { ...tool, toJSON: () => (counted.printed++, tool) } as unknown as ListedTool }
  return { counted, tool }
}

test('a tool is printed once, however many lists have it and however often they are asked for', () => {
  const [a, b] = [aTool('a'), aTool('b')]
  const print = createToolPrinter()
  // As many as there are lists of scopes: not all are kept whole.
  const lists = Array.from({ length: 50 }, (_, n) =>
    n % 2 ? [a.counted.listed] : [a.counted.listed, b.counted.listed],
  )
  for (const list of [...lists, ...lists]) {
    const text = print(list)
    assert.deepEqual(JSON.parse(text), list.length === 1 ? [a.tool] : [a.tool, b.tool])
    assert.match(text, /^[ -~]*$/)
  }
  assert.deepEqual([a.counted.printed, b.counted.printed], [1, 1])
})

test('the list comes in place of whatever stands for it', () => {
  const one = JSON.stringify({ id: 1, result: { tools: STAND_IN } })
  assert.equal(withTools(`[${one},${one}]`, '["$&"]').match(/"tools":\["\$&"\]/g)?.length, 2)
})
