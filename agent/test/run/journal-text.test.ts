import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { createClock } from '../../link/clock.ts'
import { createRest } from '../../link/rest.ts'
import { journalOf } from '../../run/journal-text.ts'

const RECORDS = '[[1,"step",0,"closed"]]'
const OFFER = {
  run: 'run_01jd0000000000000000000000',
  epoch: 1,
  journal: { entries: 1, text: null },
} as unknown as Offer

/** Answers for the next requests; the last one is for all that come after it. */
let answers: ((response: http.ServerResponse) => void)[] = []
let asked = 0
const server = http.createServer((_, response) => {
  asked += 1
  response.setHeader('content-type', 'application/json')
  const answer = answers.length > 1 ? answers.shift()! : answers[0]!
  answer(response)
})

const whole = (text: string) => (response: http.ServerResponse) => void response.end(text)
/** The connection ends within the body. */
const cut = (response: http.ServerResponse) => void response.write('[', () => setImmediate(() => response.destroy()))

before(async () => {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
})
after(() => server.close())

function given(...all: typeof answers): Promise<{ completed: number[] }> {
  answers = all
  asked = 0
  const { port } = server.address() as AddressInfo
  const rest = createRest(`http://127.0.0.1:${port}`, () => Promise.resolve('token'), createClock())
  return journalOf(rest, OFFER, new AbortController().signal)
}

test('a journal whose connection ends in the middle is asked for again', async () => {
  await given(cut, cut, whole(RECORDS))
  assert.equal(asked, 3)
})

test('not for ever', async () => {
  await assert.rejects(given(cut))
  assert.equal(asked, 6)
})

test('one that nobody can read is asked for once', async () => {
  await assert.rejects(given(whole('{"no":"list"}')), { name: 'UnreadableJournal' })
  assert.equal(asked, 1)
})
