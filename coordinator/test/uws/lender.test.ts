import assert from 'node:assert/strict'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { openLender } from '../../uws/lender.js'
import { untilPolled } from '../_kit/until.ts'

const NEW_SOCKET = 'net.client.socket'

test('a cork is lent again soon after its connection was lost, and not any more when it is closed', async (t) => {
  const sockets: Socket[] = []
  const note = (message: unknown) => void sockets.push((message as { socket: Socket }).socket)
  subscribe(NEW_SOCKET, note)
  t.after(() => unsubscribe(NEW_SOCKET, note))
  const lender = openLender()
  t.after(() => lender.close())
  let acts = 0
  const lends = async () => lender.cork(() => void acts++)
  await untilPolled('a cork to be lent', lends)
  for (const connections of [2, 3]) {
    sockets.at(-1)!.destroy()
    await untilPolled('the cork to be gone', async () => !(await lends()))
    await untilPolled('a cork to be lent again', lends)
    assert.equal(sockets.length, connections)
  }
  assert.ok(acts >= 3)
  // The other end closes it, as µWS does after a time.
  sockets.at(-1)!.end()
  await untilPolled('another connection', () => sockets.length === 4)
  await untilPolled('a cork to be lent again', lends)
  lender.close()
  await untilPolled('the cork to be gone', async () => !(await lends()))
})
