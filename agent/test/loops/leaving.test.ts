import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AgentFrame, Offer } from '@windlass/shared/wire/agent.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { compose } from '../../compose.ts'
import type { Made } from '../../compose.ts'
import { readConfig } from '../../config.ts'
import { makeStateFolder, obtainIdentity } from '../../identity.ts'
import type { Intake } from '../../intake.ts'
import { claimLoop } from '../../loops/claim.ts'
import { aFolder, aLog } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator, linesOf, REGISTRATION_TOKEN } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

withAgent('an agent that is stopped between its hello and the welcome says that it leaves', async ({ fake, agent }) => {
  const placement = fake.offer(await aProgram(`console.log(1); await new Promise((r) => setInterval(r, 1e9))`))
  await until('it runs', () => linesOf(placement).length > 0)
  fake.mute.add('hello')
  const hellos = fake.heard('hello').length
  fake.cut()
  await until('it says hello again', () => fake.heard('hello').length > hellos)
  agent.stop()
  await until('it is being stopped', () => agent.lines.some(({ name }) => name === 'agent.waiting'))
  assert.equal(fake.heard('leave').length, 0)
  const { run, epoch } = placement.offer
  const resume = [{ run, epoch, seq: placement.entries.length }]
  fake.send({ t: 'welcome', cluster: 'fake', settings: fake.settings, resume, stale: [], cancel: [], now: Date.now() })
  await until('it leaves', () => fake.heard('leave').length === 1)
})

/** The loop that claims with all that it has, and a coordinator that answers one poll at the moment that counts. */
async function answered(meanwhile: (deps: { intake: Intake }, stop: () => void) => void) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const { lines, log } = aLog()
  const made: Made = []
  const stopping = new AbortController()
  const settings = { WINDLASS_URL: fake.url, WINDLASS_AGENT_HOME: folder, WINDLASS_AGENT_SPARES: '0' }
  const config = readConfig({ ...settings, WINDLASS_AGENT_TOKEN: REGISTRATION_TOKEN })
  try {
    await makeStateFolder(folder)
    const { deps } = await compose(config, { identity: await obtainIdentity(config, log, stopping.signal) }, log, made)
    const { offer } = fake.offer(await aProgram(`return 1`))
    const said: AgentFrame[] = []
    const claims = async (): Promise<Offer[]> => {
      meanwhile(deps, () => stopping.abort())
      return [offer]
    }
    const link = { ...deps.link, isReady: true, send: (frame: AgentFrame) => said.push(frame) > 0 }
    const looping = claimLoop({ ...deps, link, rest: { ...deps.rest, claims } }, stopping.signal)
    await until('the offer went back', () => lines.some(({ name }) => name === 'offer.left'))
    stopping.abort()
    await looping
    return { accepted: said.filter(({ t }) => t === 'accept'), holds: deps.spool.holds() }
  } finally {
    stopping.abort()
    for (const each of made.toReversed()) await each.undo()
    await fake.close()
    await remove()
  }
}

test('an offer that comes with the word to drain is not accepted', async () => {
  const { accepted, holds } = await answered(({ intake }) =>
    intake.heard({ state: 'draining', epoch: 1, reason: '', deadlineAt: null }),
  )
  assert.deepEqual([accepted, holds], [[], []])
})

test('an offer that comes with a signal to stop is not accepted', async () => {
  const { accepted, holds } = await answered(({ intake }, stop) => {
    stop()
    intake.leave()
  })
  assert.deepEqual([accepted, holds], [[], []])
})
