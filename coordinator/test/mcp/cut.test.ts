import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Cut, cutToFit } from '../../mcp/cut.ts'
import { resultOf } from '../../mcp/result.ts'

const LIMIT = 18_000

const list = <T>(length: number, entry: (at: number) => T): T[] => Array.from({ length }, (_, at) => entry(at))
const record = (length: number, entry: unknown) => Object.fromEntries(list(length, (at) => [`field${at}`, entry]))

/** Lists within one another, each with more entries behind the next one. */
function nested(levels: number, entries: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = [value, ...list(entries, () => 1)]
  return value
}

/**
 * The steps of a cut: reads of something in the value, and characters of JSON that were made of it or of copies.
 * Throws at the step after `most`.
 */
function cutCounted(value: unknown, most: number): { cut: Cut | undefined; steps: number } {
  let steps = 0
  const step = (more: number) => {
    steps += more
    if (steps > most) throw new Error(`more than ${most} steps`)
  }
  const { stringify } = JSON
  const stringified = mock.method(JSON, 'stringify', (node: unknown) => {
    const text = stringify(node)
    step(text.length)
    return text
  })
  const watch = (node: unknown): unknown => {
    if (typeof node !== 'object' || node === null) return node
    return new Proxy(node, {
      get(target, key, receiver) {
        step(1)
        return watch(Reflect.get(target, key, receiver))
      },
      ownKeys(target) {
        const keys = Reflect.ownKeys(target)
        step(keys.length)
        return keys
      },
    })
  }
  try {
    const cut = cutToFit(watch(value), LIMIT)
    return { cut, steps }
  } finally {
    stringified.mock.restore()
  }
}

/** Passes over a value: 13 sizes of lists, and one for its texts. Each reads an entry and its key, and writes it. */
const STEPS_PER_CHAR = 14 * 3

const LARGE: Record<string, (size: number) => unknown> = {
  'lists 130 deep': (size) => nested(130, size * 100),
  'lists 490 deep': (size) => nested(490, size * 25),
  'many lists of texts': (size) => list(size * 50, () => list(200, () => 'x'.repeat(20))),
  'a list of objects with many fields': (size) => list(size * 50, () => record(90, 1)),
  'one object with many fields': (size) => record(size * 10_000, 1),
  'many long texts': (size) => list(size * 1000, () => 'x'.repeat(300)),
}

for (const [name, make] of Object.entries(LARGE)) {
  test(`${name}: the steps of a cut grow no faster than the value`, () => {
    const steps = [1, 2, 4].map((size) => {
      const given = make(size)
      const { cut, steps: taken } = cutCounted({ given }, STEPS_PER_CHAR * JSON.stringify(given).length)
      assert.ok(cut && JSON.stringify(cut.value).length <= LIMIT)
      assert.ok(cut.notes.length > 0)
      return taken
    })
    assert.ok(steps[2]! <= 5 * steps[0]!, `${steps.join(', ')} steps`)
  })
}

test('what cannot be cut to fit is given up in as few steps', () => {
  let given: unknown = 1
  for (let level = 0; level < 490; level++) given = { ['k'.repeat(100)]: given }
  assert.equal(cutCounted({ given }, STEPS_PER_CHAR * JSON.stringify(given).length).cut, undefined)
})

test('each note says how many entries there were, and how many are left', () => {
  const given = { lines: list(3000, (at) => ({ at, tags: ['a', 'b'] })), more: record(60, [1, 2]), few: [1, 2, 3] }
  const { value, notes } = cutToFit(given, 8000) as { value: typeof given; notes: string[] }
  assert.deepEqual(value.lines, given.lines.slice(0, value.lines.length))
  assert.ok(value.lines.length >= 100)
  assert.deepEqual([value.more, value.few], [given.more, given.few])
  assert.deepEqual(notes, [`\`lines\` has 3000 entries; the first ${value.lines.length} are here.`])
})

test('an object with as many fields as ours keeps them all, and a larger one half of those', () => {
  const { value } = cutToFit({ ours: record(50, 1), given: record(51, 'x'.repeat(190)) }, 6500) as {
    value: Record<string, object>
  }
  assert.equal(Object.keys(value['ours']!).length, 50)
  assert.equal(Object.keys(value['given']!).length, 25)
})

test('the cuts that get no note are counted', () => {
  const { value, notes } = cutToFit({ given: list(196, () => list(200, () => 'x'.repeat(20))) }, LIMIT) as {
    value: { given: string[][] }
    notes: string[]
  }
  const lists = value.given.length + 1
  assert.equal(notes[0], `\`given\` has 196 entries; the first ${value.given.length} are here.`)
  assert.equal(notes[1], `\`given[0]\` has 200 entries; the first ${value.given[0]!.length} are here.`)
  assert.equal(notes.length, 11)
  assert.equal(notes[10], `${lists - 10} more lists and texts are cut.`)
})

test('a note about a text names one that is here', () => {
  const given = list(5000, () => 'y'.repeat(300))
  const { value, notes } = cutToFit({ given }, LIMIT) as { value: { given: string[] }; notes: string[] }
  assert.match(notes[0]!, /^`given` has 5000 entries; /)
  assert.equal(notes[1], '`given[0]` has 300 characters; the first 200 are here.')
  assert.equal(notes.at(-1), `${value.given.length + 1 - 10} more lists and texts are cut.`)
})

test('notes stay short, however deep or long the names are', () => {
  for (const given of [nested(490, 50), { ['k'.repeat(5000)]: list(20_000, () => 1) }]) {
    const { notes } = cutToFit({ given }, LIMIT)!
    assert.ok(notes.join(' ').length < 1700, `${notes.join(' ').length} characters`)
  }
})

test('an answer of very many names is not walked for a cut: it says where the whole is', () => {
  const plan = { row: ops.workflows.getVersion }
  const input = { workflow: 'any', version: 1 }
  const answerOf = (names: number) => resultOf(plan, input, { version: record(names, 1) })
  assert.equal(answerOf(20_000).isError, undefined)
  const { content, isError } = answerOf(30_000)
  assert.equal(isError, true)
  assert.match(content[0]!.text, /PAYLOAD_TOO_LARGE.*get_workflow_file/)
})
