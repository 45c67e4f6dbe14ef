import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlowCommits } from '../../db/slow-commits.ts'

const MINUTE_MS = 60_000

/** With a clock that stands still between the commits. */
function commits() {
  let now = 0
  const slow = createSlowCommits(() => now)
  const passes = (ms: number) => (now += ms)
  const takes = (ms: number, ...orgIds: string[]) => {
    const end = slow.begin(new Set(orgIds))
    passes(ms)
    end('committed')
  }
  const stands = (orgId: string) =>
    [slow.isApart(orgId) && 'apart', slow.isSlow(orgId) && 'slow'].filter(Boolean).join()
  return { slow, passes, takes, stands }
}

test('who was part of a commit that took long commits alone, until one was short', () => {
  const { takes, stands } = commits()
  takes(50, 'a', 'b')
  assert.deepEqual(['a', 'b'].map(stands), ['', ''])
  takes(3000, 'a', 'b')
  assert.deepEqual(['a', 'b', 'c'].map(stands), ['apart', 'apart', ''])
  takes(5, 'a')
  takes(4000, 'b')
  assert.deepEqual(['a', 'b'].map(stands), ['', 'apart,slow'])
})

test('who commits slowly alone is slow for a minute, and apart until the next short one', () => {
  const { passes, takes, stands } = commits()
  takes(5, 'b')
  takes(3000, 'a')
  takes(5, 'a')
  assert.equal(stands('a'), 'apart,slow')
  takes(5, 'b')
  takes(3000, 'a')
  passes(MINUTE_MS - 5)
  takes(4, 'a')
  takes(0, 'b')
  assert.equal(stands('a'), 'apart,slow')
  passes(1)
  assert.equal(stands('a'), 'apart')
  takes(5, 'a')
  assert.equal(stands('a'), '')
})

test('who is refused alone is slow for a minute, as what is left of it is tried again', () => {
  const { slow, takes, passes, stands } = commits()
  takes(5, 'b')
  slow.begin(new Set(['a', 'b']))('refused')
  assert.deepEqual(['a', 'b'].map(stands), ['', ''])
  slow.begin(new Set(['a']))('refused')
  assert.deepEqual(['a', 'b'].map(stands), ['apart,slow', ''])
  passes(MINUTE_MS)
  takes(5, 'a')
  assert.equal(stands('a'), '')
})

test('a commit that is long already is not waited for', () => {
  const { slow, passes, stands } = commits()
  const end = slow.begin(new Set(['a', 'b']))
  passes(300)
  assert.equal(stands('a'), '')
  passes(1)
  assert.equal(stands('a'), 'apart')
  end('away')
  assert.deepEqual(['a', 'b'].map(stands), ['', ''])
})

test('an org that is alone with the database is never slow, as nobody needs its lanes', () => {
  const { passes, takes, stands } = commits()
  takes(3000, 'a')
  takes(3000, 'a')
  assert.equal(stands('a'), 'apart')
  takes(5, 'b')
  assert.equal(stands('a'), 'apart,slow')
  passes(MINUTE_MS)
  takes(3000, 'a')
  assert.equal(stands('a'), 'apart')
})

test('where commits of all take long it is the machine, and nobody is slow', () => {
  const { takes, stands } = commits()
  for (let n = 0; n < 20; n++) takes(n * 50, `org-${n}`)
  takes(1000, 'a')
  takes(1000, 'b', 'c')
  assert.deepEqual(['a', 'b', 'c'].map(stands), ['', '', ''])
  takes(4000, 'a')
  assert.equal(stands('a'), 'apart,slow')
})
