// A sender that hangs up while its id or token waits to be looked up gives up its turn.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { request } from 'node:http'
import { after, before, test } from 'node:test'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { newId } from '@windlass/shared/ids.ts'
import { createSourceGate } from '../../limits/source-gate.ts'
import { createStrangers } from '../../limits/strangers.ts'
import { keyPair, registration } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

/** A look-up that nobody's turn comes for; resolves with the signal that it was given. */
function aLookUp() {
  const { promise, resolve } = Promise.withResolvers<AbortSignal>()
  const add = (_: unknown, gone?: AbortSignal) => {
    resolve(gone!)
    return new Promise<undefined>(() => {})
  }
  return { asked: promise, add }
}

interface Sent {
  method?: string
  path: string
  body?: string
}

async function hangsUp({ method = 'POST', path, body }: Sent, asked: Promise<AbortSignal>): Promise<void> {
  const sent = request(`${c.url}${path}`, { method, headers: { 'content-type': 'application/json' } })
  sent.on('error', () => {})
  sent.end(body)
  const gone = await asked
  assert.equal(gone.aborted, false)
  const noticed = once(gone, 'abort')
  sent.destroy()
  await noticed
}

test('an agent that registers and hangs up is noticed', async (t) => {
  const { asked, add } = aLookUp()
  t.mock.method(c.deps.tokenReads, 'add', add)
  const body = JSON.stringify(registration(mintSecret('wlr_'), (await keyPair()).x))
  await hangsUp({ path: '/runner/v1/register', body }, asked)
})

for (const method of ['POST', 'OPTIONS'])
  test(`a sender of a delivery that hangs up is noticed: ${method}`, async (t) => {
    const { asked, add } = aLookUp()
    const gate = createSourceGate(createStrangers(0), { add })
    t.mock.method(c.deps.sourceGate, 'pass', (...args: Parameters<typeof gate.pass>) => gate.pass(...args))
    await hangsUp({ method, path: `/v1/hooks/${newId('hook')}` }, asked)
  })
