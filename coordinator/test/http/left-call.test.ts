import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { type Open, OpenWork } from '../../http/open-work.ts'
import { type CallParts, RequestCall } from '../../http/request-call.ts'

/** Says what it holds. */
class Watched extends OpenWork {
  readonly held = new Set<Open>()

  override add(open: Open): void {
    super.add(open)
    this.held.add(open)
  }

  override delete(open: Open): void {
    super.delete(open)
    this.held.delete(open)
  }
}

function aCall(open: OpenWork) {
  const response = Object.assign(new EventEmitter(), { completed: false })
  return { response, call: new RequestCall({ response, open } as unknown as CallParts) }
}

test('a call whose client leaves is held no longer, also when its handler never comes to an end', () => {
  const open = new Watched()
  const { call, response } = aCall(open)
  const { gone } = call
  assert.deepEqual([open.held.size, gone.aborted], [1, false])
  response.emit('abort')
  assert.deepEqual([open.held.size, gone.aborted], [0, true])
})

test('a call that is under way when the server stops is told', () => {
  const open = new Watched()
  const { call } = aCall(open)
  const { gone } = call
  open.endAll()
  assert.equal(gone.aborted, true)
  const late = aCall(open)
  assert.equal(late.call.gone.aborted, true)
  late.call.settled()
  call.settled()
  assert.equal(open.held.size, 0)
})
