import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { createUnreadBytes } from '../../limits/unread-bytes.ts'

function limited(limits: { org: number; all: number }) {
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

test('a journal that is cut is told as one', () => {
  const names: unknown[] = []
  const write = (line: string) => void names.push((JSON.parse(line) as { name: unknown }).name)
  const unread = createUnreadBytes({ of: 'journal', org: 1, all: 1, log: createLog({}, 'debug', { write }) })
  unread.hold('a', 2, () => {})
  assert.deepEqual(names, ['journal.cut'])
})
