// The golden's own tools: what they hide, and what they show.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { changesIn, parse, render } from './golden-file.ts'
import { layout } from './layout.ts'
import { Names } from './stable.ts'

const RUN = 'run_01jd0000000000000000000001'
const OTHER = 'run_01jd0000000000000000000002'

test('what differs from run to run has a name, in the order in which it appears', () => {
  const names = new Names([['http://127.0.0.1:1234', '<url>']])
  const value = {
    run: OTHER,
    at: 1_700_000_000_000,
    text: `of ${RUN} and ${OTHER} at http://127.0.0.1:1234/x`,
    computeMs: 3,
  }
  const expected = { run: '<run 1>', at: '<time>', text: 'of <run 2> and <run 1> at <url>/x', computeMs: '<ms>' }
  assert.deepEqual(names.value(value), expected)
})

test('what does not differ stays: names of fields, figures, and texts that only look like an id', () => {
  const value = { id: 'run-1', timeoutMs: 1000, activeMs: 7, list: [0, -1, 2.5, null, true], text: 'run_1 of 2026' }
  assert.deepEqual(new Names().value(value), value)
})

test('acts are read as they were written', () => {
  const acts = [
    { name: 'one', text: `> GET /\n\n${layout({ a: [1, { b: 'x'.repeat(200) }] })}` },
    { name: 'two', text: '' },
  ]
  assert.deepEqual(parse(render(acts)), acts)
})

test('a change is told as a diff under the name of its act, what comes and goes too, and another order', () => {
  const lines = (changed: string) => ['a', 'b', 'c', 'd', changed, 'f', 'g', 'h', 'i'].join('\n')
  const act = (name: string, text = '') => ({ name, text })
  assert.deepEqual(changesIn([act('one', lines('e')), act('two', 'x')], [act('one', lines('E')), act('two', 'x')]), [
    '--- one\n b\n c\n d\n-e\n+E\n f\n g\n h\n@@\n',
  ])
  assert.deepEqual(changesIn([act('gone', 'x')], [act('new', 'y')]), ['--- gone\n-x\n+\n', '--- new\n-\n+y\n'])
  assert.match(changesIn([act('one'), act('two')], [act('two'), act('one')])[0]!, /^--- the order of the acts\n/)
  assert.deepEqual(changesIn([act('one', 'a')], [act('one', 'a\n')]), [])
})
