// A program that is cancelled while its agent is away has its grace, though the next agent fetches something first.
import assert from 'node:assert/strict'
import { existsSync, readdirSync, readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs'
import type { ServerResponse } from 'node:http'
import path from 'node:path'
import { after, test, type TestContext } from 'node:test'
import { moment, until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import type { Agent } from '../../start.ts'
import { aFolder, anAgent, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator, linesOf, type FakePlacement } from '../_kit/fake-coordinator.ts'
import { answer } from '../_kit/http.ts'

const SECRETS = { KEY: 'correct horse battery staple' }
// In bubblewrap no program is taken back.
const ENV = { WINDLASS_AGENT_ISOLATION: 'process' }
const CLEANS_UP = `
  console.log(String(process.pid))
  const timer = setInterval(() => {}, 1000)
  await new Promise((resolve) => given.signal.addEventListener('abort', resolve))
  clearInterval(timer)
  console.log('cleaned up')`

after(endAgentProcesses)

/** A program with a secret, whose agent was killed when it had noted how to take it back. */
async function abandoned(t: TestContext, variables: Record<string, string> = {}) {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  let next: Agent | undefined
  t.after(async () => {
    next?.stop()
    await next?.done
    await endAgentProcesses()
    await fake.close()
    await remove()
  })
  fake.secrets = SECRETS
  const first = await anAgentProcess(fake.url, folder, ENV)
  const placement = fake.offer(await aProgram(CLEANS_UP), { secrets: true, graceMs: 60_000, variables })
  const pid = Number(await until('its first line', () => linesOf(placement)[0]))
  const textOf = (name: string) => {
    const files = readdirSync(path.join(folder, name)).map((file) => path.join(folder, name, file))
    return files.map((file) => readFileSync(file, 'utf8')).join('')
  }
  const { run } = placement.offer
  await untilPolled('it is kept', () => textOf('lives').includes(run) && textOf('spool').includes(` m ${run} `))
  await first.kill('SIGKILL')
  const takeOver = async () => void (next = await anAgent(fake.url, folder, ENV))
  const connected = async () => next?.connected
  return { fake, folder, placement, pid, takeOver, connected }
}

/** Resolves when the agent has done all that it does about it. */
async function cancel(fake: FakeCoordinator, { offer: { run, epoch } }: FakePlacement): Promise<void> {
  const obeyed = moment('frame.obeyed', ({ type }) => type === 'cancel')
  fake.send({ t: 'cancel', runs: [{ run, epoch, why: 'cancelled', reason: 'typo', graceMs: 60_000 }] })
  await obeyed
}

async function isCleanedUp(fake: FakeCoordinator, placement: FakePlacement): Promise<void> {
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: false })
  assert.equal(linesOf(placement).at(-1), 'cleaned up')
}

test('one that is cancelled while its secrets are read again cleans up', async (t) => {
  const { fake, placement, takeOver, connected } = await abandoned(t)
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
  const { fake, placement, takeOver, connected } = await abandoned(t, { LARGE: 'x'.repeat(200_000) })
  await takeOver()
  await connected()
  await cancel(fake, placement)
  await isCleanedUp(fake, placement)
})

test('one that is cancelled before it finds the next agent cleans up, when its bundle was removed too', async (t) => {
  const { fake, folder, placement, pid, takeOver, connected } = await abandoned(t)
  process.kill(pid, 'SIGSTOP')
  rmSync(path.join(folder, 'bundles', placement.offer.bundle.digest), { recursive: true })
  await takeOver()
  await connected()
  await cancel(fake, placement)
  process.kill(pid, 'SIGCONT')
  await isCleanedUp(fake, placement)
})

test('one that ends before it finds the next agent is lost, and nothing of it stays', async (t) => {
  const { fake, folder, placement, pid, takeOver, connected } = await abandoned(t)
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
