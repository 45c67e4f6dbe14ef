import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { createUnreadBytes } from '../../limits/unread-bytes.ts'

function limited(limits: { org: number; all: number; sparesOne?: boolean }) {
  const logged: Record<string, unknown>[] = []
  const write = (line: string) => void logged.push(JSON.parse(line) as Record<string, unknown>)
  const unread = createUnreadBytes({ ...limits, log: createLog({}, 'debug', { write }) })
  const cut: string[] = []
  const hold = (org: string, name: string, bytes: number) => unread.hold(org, bytes, () => cut.push(name))
  return { hold, cut, logged }
}

test('over the limit of an org its reader that has taken nothing for longest is cut, and no reader of others', () => {
  const { hold, cut, logged } = limited({ org: 100, all: 1000 })
  hold('a', 'first', 40)
  const taken = hold('a', 'second', 40)
  hold('b', 'other', 100)
  hold('a', 'third', 20)
  assert.deepEqual(cut, [])
  taken()
  taken()
  hold('a', 'fourth', 60)
  assert.deepEqual(cut, ['first'])
  hold('a', 'fifth', 90)
  assert.deepEqual(cut, ['first', 'third', 'fourth'])
  const { name, scope, limitBytes, orgId } = logged[0]!
  assert.deepEqual(
    { name, scope, limitBytes, orgId },
    { name: 'stream.cut', scope: 'org', limitBytes: 100, orgId: 'a' },
  )
})

test('over the limit of all orgs a reader of the org that leaves most unread is cut', () => {
  const { hold, cut } = limited({ org: 100, all: 150 })
  hold('small', 'small', 10)
  hold('large', 'slow', 50)
  hold('large', 'late', 50)
  hold('other', 'other', 50)
  assert.deepEqual(cut, ['slow'])
})

test('a reader that is cut gives back what it held, once', () => {
  const { hold, cut } = limited({ org: 100, all: 1000 })
  const gone = hold('a', 'first', 60)
  hold('a', 'second', 60)
  gone()
  hold('a', 'third', 40)
  assert.deepEqual(cut, ['first'])
  hold('a', 'fourth', 1)
  assert.deepEqual(cut, ['first', 'second'])
})

test('one that alone is over the limit of its org stands beside the others, and goes first over that of all', () => {
  const { hold, cut } = limited({ org: 100, all: 500, sparesOne: true })
  hold('a', 'first', 60)
  hold('a', 'oversized', 300)
  hold('a', 'second', 40)
  assert.deepEqual(cut, [])
  hold('a', 'third', 1)
  assert.deepEqual(cut, ['first'])
  hold('a', 'oversized too', 200)
  assert.deepEqual(cut, ['first', 'oversized'])
  hold('b', 'other', 90)
  assert.deepEqual(cut, ['first', 'oversized'])
  hold('b', 'oversized of b', 250)
  assert.deepEqual(cut, ['first', 'oversized', 'oversized of b'])
})

test('where none is spared, a reader of what alone is over the limit has no others cut', () => {
  const { hold, cut } = limited({ org: 100, all: 500 })
  hold('a', 'first', 60)
  hold('a', 'oversized', 300)
  assert.deepEqual(cut, ['oversized'])
})

test('a journal that is cut is told as one', () => {
  const names: unknown[] = []
  const write = (line: string) => void names.push((JSON.parse(line) as { name: unknown }).name)
  const unread = createUnreadBytes({ of: 'journal', org: 1, all: 1, log: createLog({}, 'debug', { write }) })
  unread.hold('a', 2, () => {})
  assert.deepEqual(names, ['journal.cut'])
})
