import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, statSync } from 'node:fs'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { OTHER_KEY_REASON, REVOKED_REASON } from '@windlass/shared/wire/agent.ts'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { makeKeys, type Identity } from '../../identity.ts'
import { openKeys } from '../../keys.ts'
import { createClock } from '../../link/clock.ts'
import { createLink } from '../../link/link.ts'
import { aFolder, aLog, anAgent } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { FakeCoordinator } from '../_kit/fake-coordinator.ts'
import { refuseUpgrade } from '../_kit/http.ts'
import { QUICK } from '../_kit/quick.ts'
import { withAgent } from '../_kit/with-agent.ts'

const DAY_MS = 86_400_000

const fileIn = (folder: string) => path.join(folder, 'identity.json')
const identityIn = (folder: string): Identity => JSON.parse(readFileSync(fileIn(folder), 'utf8'))

withAgent(
  'an agent whose coordinator was set back to a former key of it comes back with that, and makes a new one at once',
  async ({ fake, agent, folder }) => {
    const first = identityIn(folder).privateKey.x!
    await until('two new keys', () => fake.runners.renewed.length >= 2)
    fake.runners.setBack(first)
    const before = fake.runners.renewed.length
    fake.cut()
    await until('the former key', () => agent.lines.find(({ name }) => name === 'key.former.serves'))
    await until('a new key', () => fake.runners.renewed.length > before)
    await until('the file', () => fake.runners.renewed.includes(identityIn(folder).privateKey.x!))
    assert.equal(statSync(fileIn(folder)).mode & 0o777, 0o600)
    assert.equal((await fake.ending(fake.offer(await aProgram(`return 1`)))).how, 'returned')
  },
  { settings: { renewKeyMs: 300 } },
)

test('a former key is found after a start too, and is renewed whatever the age at which keys are', async () => {
  const fake = await FakeCoordinator.start({ renewKeyMs: 300 })
  const { folder, remove } = await aFolder()
  try {
    const first = await anAgent(fake.url, folder)
    const { x } = identityIn(folder).privateKey
    await until('two new keys', () => fake.runners.renewed.length >= 2)
    first.stop()
    await first.done
    const last = identityIn(folder).privateKey.x!
    fake.runners.setBack(x!)
    fake.settings.renewKeyMs = 3_600_000
    const count = fake.runners.renewed.length
    const agent = await anAgent(fake.url, folder)
    const renewed = await until('a new key', () => fake.runners.renewed[count])
    await until('the file', () => identityIn(folder).privateKey.x === renewed)
    const former = identityIn(folder).formerKeys!.map(({ key }) => key.x)
    assert.deepEqual(former.slice(0, 2), [x, last], 'who restored the wrong backup restores another one')
    assert.equal(new Set(former).size, former.length)
    agent.stop()
    assert.equal(await agent.done, 0)
  } finally {
    await fake.close()
    await remove()
  }
})

test('keys of the last 30 days are kept, 60 at most; a file of before has none', async () => {
  const { folder, remove } = await aFolder()
  try {
    const [present, old] = [await makeKeys(), await makeKeys()]
    const identity = { runner: 'rnr_1', org: 'o', pool: 'p', privateKey: present.privateKey }
    const keys = await openKeys(folder, identity)
    assert.equal(await keys.former(0), undefined)
    await keys.change(async () => undefined)
    const [{ key, until: at }] = identityIn(folder).formerKeys as [{ key: object; until: number }]
    assert.deepEqual(key, present.privateKey)
    const formerKeys = [
      ...Array.from({ length: 70 }, (_, n) => ({ key: { ...old.privateKey, x: `${n}` }, until: at - n })),
      { key: { ...old.privateKey, x: 'older' }, until: at - 31 * DAY_MS },
    ]
    await (await openKeys(folder, { ...identity, formerKeys })).change(async () => undefined)
    const xs = (identity: Identity) => identity.formerKeys!.map((each) => each.key.x)
    assert.deepEqual(xs(identityIn(folder)), [present.privateKey.x, ...Array.from({ length: 59 }, (_, n) => `${n}`)])
    const aged = { ...identity, formerKeys: formerKeys.slice(-1) }
    await (await openKeys(folder, aged)).change(async () => undefined)
    assert.deepEqual(xs(identityIn(folder)), [present.privateKey.x])
  } finally {
    await remove()
  }
})

/** A coordinator that knows nobody; `answer` may say more to a token. */
async function refusing(t: TestContext, answer: (token: string) => object | undefined) {
  const tokens: string[] = []
  const server = http.createServer().on('upgrade', (request, socket) => {
    // An agent that stops cuts it off.
    socket.on('error', () => undefined)
    const token = request.headers.authorization!.replace('Bearer ', '')
    tokens.push(token)
    announce()
    refuseUpgrade(socket, { detail: answer(token) })
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tokens }
}

function aLinkWithFormerKeys(t: TestContext, url: string, former: readonly string[], log = aLog().log) {
  t.mock.method(Math, 'random', () => 0)
  const end = new AbortController()
  const link = createLink({
    url,
    clock: createClock(),
    log,
    refusedMs: QUICK.refusedMs,
    mostPauseMs: () => 30_000,
    credential: () => Promise.resolve('present'),
    formerCredentials: (nth) =>
      Promise.resolve(
        former.length === 0
          ? undefined
          : { token: former[nth % former.length]!, serves: () => assert.fail('it was let in') },
      ),
  })
  const hello = () => assert.fail('it was let in')
  const ended = link.keep(end.signal, { hello, onFrame: () => undefined, onDown: () => undefined })
  return { end, ended }
}

test('former keys take turns with the present one, in as many tries as there were without them', async (t) => {
  const { url, tokens } = await refusing(t, () => undefined)
  const { end, ended } = aLinkWithFormerKeys(t, url, ['one ago', 'two ago'])
  await until('seven tries', () => tokens.length >= 7)
  end.abort()
  await ended
  const round = ['present', 'one ago', 'present', 'two ago']
  assert.deepEqual(tokens.slice(0, 7), [...round, ...round].slice(0, 7))
})

for (const revoked of ['present', 'one ago']) {
  test(`an agent that hears with its key of ${revoked} that it was revoked tries no other key`, async (t) => {
    const { url, tokens } = await refusing(t, (token) => (token === revoked ? { reason: REVOKED_REASON } : undefined))
    const { ended } = aLinkWithFormerKeys(t, url, ['one ago', 'two ago'])
    assert.equal((await ended)?.code, 'REVOKED')
    assert.deepEqual(tokens, revoked === 'present' ? ['present'] : ['present', 'one ago'])
  })
}

test('a state folder of before a renewal is told from a runner that nobody knows', async (t) => {
  for (const [reason, advice] of [
    [
      OTHER_KEY_REASON,
      /^the coordinator knows this runner by another key: .*of before that.*register the machine anew/,
    ],
    [undefined, /^the coordinator does not know this agent \(any more\)/],
  ] as const) {
    const logged = aLog()
    const { url } = await refusing(t, () => ({ reason }))
    const { end, ended } = aLinkWithFormerKeys(t, url, [], logged.log)
    const line = await until('it is told', () => logged.lines.find(({ name }) => name === 'link.unauthenticated'))
    end.abort()
    await ended
    assert.match(String(line['advice']), advice)
  }
})

test('an agent without former keys goes on to try its present one', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  try {
    const first = await anAgent(fake.url, folder)
    first.stop()
    await first.done
    const { privateKey } = identityIn(folder)
    fake.runners.setBack((await makeKeys()).publicKey.x)
    const agent = await anAgent(fake.url, folder)
    await until('three refusals', () => fake.unauthenticated >= 3)
    fake.runners.setBack(privateKey.x!)
    await agent.connected
    agent.stop()
    assert.equal(await agent.done, 0)
  } finally {
    await fake.close()
    await remove()
  }
})
