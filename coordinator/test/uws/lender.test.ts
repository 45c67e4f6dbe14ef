import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'
import { test } from 'node:test'
import { promisify } from 'node:util'
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

/** In a process with few descriptors: takes all, loses the connection, and gives them back when that was noticed. */
const WITHOUT_DESCRIPTORS = `
  import { subscribe } from 'node:diagnostics_channel'
  import { closeSync, openSync } from 'node:fs'
  import { setTimeout as pause } from 'node:timers/promises'
  import { openLender } from ${JSON.stringify(import.meta.resolve('../../uws/lender.js'))}
  const sockets = []
  subscribe('${NEW_SOCKET}', ({ socket }) => sockets.push(socket))
  const lender = openLender()
  const lends = () => lender.cork(() => undefined)
  while (!lends()) await pause(10)
  const taken = []
  const takeAll = () => {
    try {
      for (;;) taken.push(openSync('/dev/null'))
    } catch {}
  }
  sockets[0].destroy()
  while (lends()) await pause(1)
  const since = performance.now()
  while (performance.now() - since < 1500) {
    takeAll()
    await pause(10)
  }
  console.log(taken.length > 0, lends())
  taken.forEach((fd) => closeSync(fd))
  for (let tries = 0; tries < 300 && !lends(); tries++) await pause(10)
  console.log(lends())
  lender.close()
`

test('a cork is lent again where no descriptor was free when its connection was lost', async () => {
  const line = 'ulimit -n 64 && exec "$0" --input-type=module -e "$1"'
  const { stdout } = await promisify(execFile)('bash', ['-c', line, process.execPath, WITHOUT_DESCRIPTORS], {
    timeout: 30_000,
  })
  assert.equal(stdout, 'true false\ntrue\n')
})
