import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test, type TestContext } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { createClock } from '../../link/clock.ts'
import { createLink } from '../../link/link.ts'
import { PACES } from '../../paces.ts'
import { aLog } from '../_kit/an-agent.ts'
import { refuseUpgrade } from '../_kit/http.ts'

const AHEAD_MS = 30 * 60_000

/** Refuses each connection as a coordinator does whose clock is half an hour ahead; `first` happens before. */
async function refusing(t: TestContext, first: (date: string) => void): Promise<string> {
  const server = http.createServer().on('upgrade', (_request, socket) => {
    const date = new Date(Date.now() + AHEAD_MS).toUTCString()
    first(date)
    refuseUpgrade(socket, { date })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a token that was made before a poll set the clock right is made anew at once', async (t) => {
  const clock = createClock()
  const url = await refusing(t, (date) => clock.learnDate(date))
  const { log, lines } = aLog()
  const hello = () => assert.fail('it was let in')
  const link = createLink({
    url,
    clock,
    log,
    credential: () => Promise.resolve('token'),
    formerCredentials: () => Promise.resolve(undefined),
    refusedMs: PACES.refusedMs,
    mostPauseMs: () => 30_000,
  })
  const end = new AbortController()
  const ended = link.keep(end.signal, { hello, onFrame: () => undefined, onDown: () => undefined })
  const logged = () => lines.map(({ name }) => name)
  await until('both refusals are told', () => logged().length === 2)
  end.abort()
  await ended
  // The second token is of the right time: who is refused with it is unknown.
  assert.deepEqual(logged(), ['clock.corrected', 'link.unauthenticated'])
})
