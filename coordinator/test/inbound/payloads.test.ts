// Readers of payloads that lie in the object store.
import assert from 'node:assert/strict'
import { readdirSync, readlinkSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { aCoordinatorOfItsOwn, rawCall, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

/** More than sockets take of what nobody reads. */
const BYTES = 16 * 1024 * 1024

let c: TestCoordinator
let path: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  const session = await aSession(c.db, { orgId: c.orgId })
  await aWorkflow(c, { slug: 'taker' })
  const hook = await aHook(c, session, 'taker')
  const body = Buffer.alloc(BYTES, 0x20)
  const { receipt } = await deliver(hook, { body, headers: { 'content-type': 'text/plain' } })
  path = `/v1/deliveries/${receipt.delivery.id}/payload`
})
after(() => c.stop())

/** Of this process, where the coordinator is. */
function openObjects(): string[] {
  return readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).match(/.*\/objects\/.*/) ?? []
    } catch {
      // It was closed since.
      return []
    }
  })
}

const skip = process.platform === 'linux' ? false : 'descriptors are read from /proc'

test('who asks for the head of a payload leaves no file open', { skip }, async () => {
  const head = await rawCall(c, 'HEAD', path)
  assert.equal(head.status, 200)
  assert.deepEqual(openObjects(), [])
})

test('a reader who is cut gets no end, and leaves no file open', { skip }, async (t) => {
  const cuts: (() => void)[] = []
  t.mock.method(c.deps.unread, 'hold', (_org: string, _bytes: number, cut: () => void) => {
    cuts.push(cut)
    return () => {}
  })
  const { body } = await rawCall(c, 'GET', path)
  assert.equal(cuts.length, 1)
  assert.equal(openObjects().length, 1)
  cuts[0]!()
  await assert.rejects(new Response(body).arrayBuffer())
  await untilPolled('the file to be closed', () => openObjects().length === 0)
})
