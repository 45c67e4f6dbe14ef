import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ask, EntryIdentity, JournalOp } from '@windlass/shared/wire/journal.ts'
import { hideInFrame } from '../../../run/redact/frames.ts'
import { aRedactor } from '../../_kit/a-redactor.ts'

const SECRET = 'correct-horse'
const redactor = aRedactor({ SECRET })

function hide(name: 'threw' | 'phase' | 'blocked' | 'returned' | 'park', value: unknown): unknown {
  return JSON.parse(
    hideInFrame(redactor, { name, at: 0, payload: Buffer.from(JSON.stringify(value)) }).payload.toString(),
  )
}

function journal(op: JournalOp): JournalOp {
  const frame = hideInFrame(redactor, { name: 'journal', at: 0, payload: Buffer.from(JSON.stringify(op)) })
  return JSON.parse(frame.payload.toString()) as JournalOp
}

function anEntry(more: Partial<EntryIdentity>): EntryIdentity {
  return {
    n: 1,
    position: 1,
    parent: '',
    kind: 'input',
    name: '',
    hash: 'h',
    occurrence: 1,
    args: '',
    site: '',
    ...more,
  }
}

test('errors, phases, outputs and mismatches pass without it, keys included', () => {
  const error = {
    name: 'Error',
    message: `no ${SECRET}`,
    stack: `Error: ${SECRET}\n at`,
    code: SECRET,
    detail: { [SECRET]: [SECRET] },
  }
  const hidden = { name: 'Error', message: 'no ***', stack: 'Error: ***\n at', code: '***', detail: { '***': ['***'] } }
  assert.deepEqual(hide('threw', error), hidden)
  assert.deepEqual(hide('phase', { name: SECRET, data: [SECRET] }), { name: '***', data: ['***'] })
  assert.deepEqual(hide('returned', SECRET), '***')
  assert.deepEqual(hide('blocked', { expected: SECRET, received: 'sleep("correct-ho…) at x', at: '' }), {
    expected: '***',
    received: 'sleep("***…) at x',
    at: '',
  })
})

test('people read a question without it, and its schema is still one', () => {
  const schemaText = JSON.stringify({ type: 'string', description: `like ${SECRET}` })
  const ask: Ask = {
    for: 'input',
    prompt: `Is ${SECRET} right?`,
    schemaText,
    timeoutMs: null,
    onTimeoutText: `"${SECRET}"`,
  }
  const name = `Is ${SECRET} right?`
  const hidden = journal({ op: 'open', entry: anEntry({ name, args: JSON.stringify({ prompt: name }) }), ask })
  assert.ok(hidden.op === 'open' && hidden.ask.for === 'input')
  assert.equal(hidden.entry.name, 'Is *** right?')
  assert.equal(hidden.entry.args, '{"prompt":"Is *** right?"}')
  assert.equal(hidden.ask.prompt, 'Is *** right?')
  assert.deepEqual(JSON.parse(hidden.ask.schemaText ?? ''), { type: 'string', description: 'like ***' })
  // What the program gets back is its own.
  assert.equal(hidden.ask.onTimeoutText, `"${SECRET}"`)
})

test('arguments that were cut in the midst of it do not show its beginning', () => {
  const args = `"${'a'.repeat(490)}${SECRET.slice(0, 9)}`
  const hidden = journal({ op: 'drift', n: 1, args })
  assert.ok(hidden.op === 'drift' && hidden.args.endsWith('aaa***'), JSON.stringify(hidden))
})

test('results of steps and inputs of children are for the program itself and pass as they are', () => {
  const close: JournalOp = {
    op: 'close',
    entry: anEntry({ kind: 'step', name: SECRET }),
    state: 'done',
    result: `"${SECRET}"`,
  }
  assert.deepEqual(journal(close), close)
  const ask: Ask = { for: 'child', workflow: 'w', inputText: `"${SECRET}"`, version: null, tags: [SECRET], priority: 0 }
  const hidden = journal({ op: 'open', entry: anEntry({ kind: 'child', name: 'w', args: `"${SECRET}"` }), ask })
  assert.ok(hidden.op === 'open' && hidden.ask.for === 'child')
  assert.equal(hidden.ask.inputText, `"${SECRET}"`)
  assert.deepEqual(hidden.ask.tags, ['***'])
  assert.equal(hidden.entry.args, '"***"')
})

test('of a step that has failed the reason is hidden, in the journal as everywhere', () => {
  const result = JSON.stringify({ name: 'Error', message: `no ${SECRET}`, stack: SECRET })
  const hidden = journal({ op: 'close', entry: anEntry({ kind: 'step', name: 'charge' }), state: 'failed', result })
  assert.ok(hidden.op === 'close')
  assert.deepEqual(JSON.parse(hidden.result), { name: 'Error', message: 'no ***', stack: '***' })
})

test('a word of the journal that has no shape at all shows no secret', () => {
  assert.deepEqual(journal({ op: 'open', entry: { args: 1 }, ask: SECRET } as unknown as JournalOp), {
    op: 'open',
    entry: { args: 1 },
    ask: '***',
  })
})

test('an error or a schema that no runtime writes is hidden as the text that it is', () => {
  const values = Object.fromEntries(Array.from({ length: 30 }, (_, n) => [`k${n}`, SECRET]))
  const result = `${JSON.stringify(values)} `
  const closed = journal({ op: 'close', entry: anEntry({ kind: 'step' }), state: 'failed', result })
  assert.ok(closed.op === 'close')
  assert.equal(closed.result, result.replaceAll(SECRET, '***'))
  const schemaText = `{"a":"${SECRET}"}${' '.repeat(20_000)}`
  const ask: Ask = { for: 'input', prompt: SECRET, schemaText, timeoutMs: null, onTimeoutText: null }
  const opened = journal({ op: 'open', entry: anEntry({ name: SECRET }), ask })
  assert.ok(opened.op === 'open' && opened.ask.for === 'input')
  assert.equal(opened.ask.schemaText, schemaText.replace(SECRET, '***'))
})

test('a secret may be a word of ours, and what is told is told all the same', () => {
  const own = aRedactor({ one: 'text', two: 'info', three: 'message', four: 'name', five: 'fields' })
  const show = (name: 'log' | 'threw' | 'phase', value: unknown): unknown => {
    const frame = { name, at: 0, payload: Buffer.from(JSON.stringify(value)) }
    return JSON.parse(hideInFrame(own, frame).payload.toString())
  }
  assert.deepEqual(show('log', { text: 'a text', level: 'info', fields: { info: 1 } }), {
    text: 'a ***',
    level: 'info',
    fields: { '***': 1 },
  })
  assert.deepEqual(show('threw', { name: 'Error', message: 'no message' }), { name: 'Error', message: 'no ***' })
  assert.deepEqual(show('phase', { name: 'name', text: 'x' }), { name: '***', '***': 'x' })
})

test('what is no JSON, and no word of a journal, is hidden as the text that it is', () => {
  const broken = Buffer.from(`{"op": ${SECRET}`)
  for (const name of ['journal', 'phase', 'threw'] as const) {
    assert.equal(hideInFrame(redactor, { name, at: 0, payload: broken }).payload.toString(), '{"op": ***')
  }
  const odd = Buffer.from('null')
  assert.equal(hideInFrame(redactor, { name: 'journal', at: 0, payload: odd }).payload, odd)
})

test('the error that a step has failed with can be read by the program again, whatever words are secrets', () => {
  const commonTexts = aRedactor({ A: 'name', B: 'message', C: 'stack', D: 'code', E: SECRET })
  const result = JSON.stringify({ name: 'Error', message: `no ${SECRET}`, code: 'E_NO', stack: `Error: no ${SECRET}` })
  const op: JournalOp = { op: 'close', entry: anEntry({ kind: 'step' }), state: 'failed', result }
  const payload = Buffer.from(JSON.stringify(op))
  const hidden = JSON.parse(
    hideInFrame(commonTexts, { name: 'journal', at: 0, payload }).payload.toString(),
  ) as typeof op
  assert.deepEqual(JSON.parse(hidden.result), {
    name: 'Error',
    message: 'no ***',
    code: 'E_NO',
    stack: 'Error: no ***',
  })
})
