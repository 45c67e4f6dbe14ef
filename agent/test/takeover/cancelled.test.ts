// A program that is cancelled while its agent is away has its grace, though the next agent fetches something first.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import type { CancelOrder } from '@windlass/shared/wire/agent.ts'
import { moment, until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { type FakeCoordinator, linesOf, type FakePlacement } from '../_kit/fake-coordinator.ts'
import { answer } from '../_kit/http.ts'
import { abandoned } from './abandoned.ts'

const SECRETS = { KEY: 'correct horse battery staple' }
const CLEANS_UP = `
  console.log(String(process.pid))
  const timer = setInterval(() => {}, 1000)
  await new Promise((resolve) => given.signal.addEventListener('abort', resolve))
  clearInterval(timer)
  console.log('cleaned up')`

after(endAgentProcesses)

/** It has a secret, too. */
async function withSecret(t: TestContext, variables: Record<string, string> = {}) {
  return abandoned(t, CLEANS_UP, { graceMs: 60_000, secrets: SECRETS, variables })
}

/** Resolves when the agent has done all that it does about it. */
async function cancel(
  fake: FakeCoordinator,
  { offer: { run, epoch } }: FakePlacement,
  how: Pick<CancelOrder, 'why' | 'graceMs'> = { why: 'cancelled', graceMs: 60_000 },
): Promise<void> {
  const obeyed = moment('frame.obeyed', ({ type }) => type === 'cancel')
  fake.send({ t: 'cancel', runs: [{ run, epoch, reason: 'typo', ...how }] })
  await obeyed
}

async function isCleanedUp(fake: FakeCoordinator, placement: FakePlacement): Promise<void> {
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
  assert.equal(linesOf(placement).at(-1), 'cleaned up')
}

test('one that is cancelled while its secrets are read again cleans up', async (t) => {
  const { fake, placement, takeOver, connected } = await withSecret(t)
  const asked = Promise.withResolvers<ServerResponse>()
  fake.secrets = asked.resolve
  await takeOver()
  const response = await asked.promise
  await connected()
  await cancel(fake, placement)
  answer(response, 200, { secrets: SECRETS })
  await isCleanedUp(fake, placement)
})

test('one whose variables do not fit into one read of its pipe goes on, and cleans up', async (t) => {
  const { fake, placement, takeOver, connected } = await withSecret(t, { LARGE: 'x'.repeat(200_000) })
  await takeOver()
  await connected()
  await cancel(fake, placement)
  await isCleanedUp(fake, placement)
})

test('one that is cancelled before it finds the next agent cleans up, when its bundle was removed too', async (t) => {
  const { fake, folder, placement, pid, takeOver, connected } = await withSecret(t)
  process.kill(pid, 'SIGSTOP')
  rmSync(path.join(folder, 'bundles', placement.offer.bundle.digest), { recursive: true })
  await takeOver()
  await connected()
  await cancel(fake, placement)
  process.kill(pid, 'SIGCONT')
  await isCleanedUp(fake, placement)
})

test('one that ends before it finds the next agent is lost, and nothing of it stays', async (t) => {
  const { fake, folder, placement, pid, takeOver, connected } = await withSecret(t)
  const workspace = readlinkSync(`/proc/${pid}/cwd`)
  // One that is as it was given would be kept for others.
  writeFileSync(path.join(workspace, 'note'), '')
  process.kill(pid, 'SIGSTOP')
  await takeOver()
  await connected()
  await untilPolled('its pipes are laid', () => pipesIn(folder).length === 4)
  process.kill(pid, 'SIGKILL')
  assert.equal((await fake.ending(placement)).how, 'lost')
  await untilPolled('its workspace is gone', () => !existsSync(workspace))
  assert.deepEqual(pipesIn(folder), [])
})

for (const why of ['cancelled', 'timed-out'] as const)
  test(`one that is ${why} while nobody answers with its secrets is ended when its grace is over`, async (t) => {
    const { fake, placement, takeOver, connected } = await withSecret(t)
    const asked = Promise.withResolvers<ServerResponse>()
    fake.secrets = asked.resolve
    await takeOver()
    await asked.promise
    await connected()
    await cancel(fake, placement, { why, graceMs: 100 })
    assert.equal((await fake.ending(placement)).how, why)
  })

test('its time goes on while nobody answers with its secrets', async (t) => {
  const { fake, placement, takeOver } = await abandoned(t, CLEANS_UP, {
    secrets: SECRETS,
    timeoutMs: 3_000,
    graceMs: 1,
  })
  fake.secrets = () => undefined
  await takeOver()
  assert.deepEqual(await fake.ending(placement), { how: 'timed-out', timeoutMs: 3_000 })
})

test('the bundle of one that is not heard yet stays on a full disk', async (t) => {
  const { folder, placement, pid, takeOver } = await withSecret(t)
  process.kill(pid, 'SIGSTOP')
  const { lines } = await takeOver({ WINDLASS_AGENT_DISK_RESERVE_MB: String(2 ** 20) })
  await until('the check of the disk', () =>
    lines.some(({ name, check }) => name === 'check.fails' && check === 'disk'),
  )
  assert.ok(!lines.some(({ name }) => name === 'bundle.removed'))
  assert.ok(existsSync(path.join(folder, 'bundles', placement.offer.bundle.digest, 'main.mjs')))
})

/** Named pipes in a folder that this process holds open. */
function pipesIn(folder: string): string[] {
  const names = readdirSync('/proc/self/fd').flatMap((fd) => {
    try {
      return [readlinkSync(`/proc/self/fd/${fd}`)]
    } catch {
      return []
    }
  })
  return names.filter((name) => name.startsWith(folder) && /frames|messages/.test(name))
}
