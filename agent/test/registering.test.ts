import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { cp } from 'node:fs/promises'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { readConfig } from '../config.ts'
import { obtainIdentity } from '../identity.ts'
import { aFolder, aLog } from './_kit/an-agent.ts'
import { answer, readJson, unlessGivenUp } from './_kit/http.ts'

interface Asked {
  token: string
  publicKey: { x: string }
}

/** Takes each registration, unless it refuses them; its answer is lost where `isLost` says so. */
async function aCoordinator(t: TestContext, isLost: () => boolean, isRefused = () => false) {
  const asked: Asked[] = []
  const join = async (request: http.IncomingMessage, response: http.ServerResponse) => {
    asked.push(await readJson(request))
    announce()
    if (isLost()) response.destroy()
    else if (isRefused())
      answer(response, 401, { error: { code: 'UNAUTHENTICATED', message: 'The token is none.', requestId: 'req_1' } })
    else answer(response, 201, { runner: 'rnr_1', org: 'o', pool: 'p', settings: {} })
  }
  const server = http.createServer((request, response) => void unlessGivenUp(request, join(request, response)))
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => {
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked }
}

async function aHome(t: TestContext): Promise<string> {
  const { folder, remove } = await aFolder()
  t.after(remove)
  return folder
}

function obtain(url: string, home: string, { token = 'wlr_a', signal = new AbortController().signal } = {}) {
  const env = { WINDLASS_AGENT_CONFIG: 'none', WINDLASS_URL: url, WINDLASS_AGENT_HOME: home }
  return obtainIdentity(readConfig({ ...env, WINDLASS_AGENT_TOKEN: token }), aLog().log, signal)
}

const keysOf = (asked: readonly Asked[]) => asked.map(({ publicKey }) => publicKey.x)
const firstKeyIn = (home: string) => path.join(home, 'first-key.json')

/** Asks until it has been heard, and ends before it has an answer. */
async function endWithoutAnswer(url: string, home: string, asked: readonly Asked[], token = 'wlr_a') {
  const end = new AbortController()
  const count = asked.length
  const ended = assert.rejects(obtain(url, home, { token, signal: end.signal }), { exitCode: 0 })
  await until('the registration', () => asked.length > count)
  end.abort()
  await ended
}

test('a registration whose answer was lost is asked again with the same key, also by the next start', async (t) => {
  let isAway = true
  const { url, asked } = await aCoordinator(t, () => isAway)
  const home = await aHome(t)
  await endWithoutAnswer(url, home, asked)
  assert.equal(statSync(firstKeyIn(home)).mode & 0o777, 0o600)
  assert.equal(existsSync(path.join(home, 'identity.json')), false)
  await endWithoutAnswer(url, home, asked)
  isAway = false
  const { privateKey } = await obtain(url, home)
  assert.deepEqual(new Set(keysOf(asked)), new Set([privateKey.x]))
  assert.ok(asked.length > 2)
  assert.equal(existsSync(firstKeyIn(home)), false)
})

test('another token, a copy of the folder and a damaged file have a key of their own', async (t) => {
  let isAway = true
  const { url, asked } = await aCoordinator(t, () => isAway)
  const [home, copy] = [await aHome(t), await aHome(t)]
  await endWithoutAnswer(url, home, asked)
  const [first] = keysOf(asked)
  await cp(home, copy, { recursive: true })
  isAway = false
  assert.notEqual((await obtain(url, copy)).privateKey.x, first)
  const { privateKey } = JSON.parse(readFileSync(firstKeyIn(home), 'utf8')) as { privateKey: { x: string } }
  assert.equal(privateKey.x, first)
  isAway = true
  await endWithoutAnswer(url, home, asked, 'wlr_b')
  const second = asked.at(-1)!.publicKey.x
  assert.notEqual(second, first)
  writeFileSync(firstKeyIn(home), '{')
  isAway = false
  assert.notEqual((await obtain(url, home, { token: 'wlr_b' })).privateKey.x, second)
})

test('of a registration that was refused no key stays: nobody has to be told of it', async (t) => {
  const { url, asked } = await aCoordinator(
    t,
    () => false,
    () => true,
  )
  const home = await aHome(t)
  await assert.rejects(obtain(url, home), { exitCode: 77 })
  assert.equal(asked.length, 1)
  assert.equal(existsSync(firstKeyIn(home)), false)
})

test('an identity that is damaged is refused with what to do, however it is damaged', async (t) => {
  const { url, asked } = await aCoordinator(t, () => false)
  const home = await aHome(t)
  const { privateKey, ...rest } = await obtain(url, home)
  const cut = { ...privateKey, d: privateKey.d!.slice(0, 20) }
  const damaged = [null, [], {}, 7, { ...rest, privateKey: cut }, { ...rest, privateKey: { ...privateKey, x: '' } }]
  const texts = damaged.map((each) => JSON.stringify(each))
  for (const text of [...texts, '', '\0\0', JSON.stringify({ ...rest, privateKey, nextKey: cut })]) {
    writeFileSync(path.join(home, 'identity.json'), text)
    const expected = { exitCode: 78, message: /identity\.json is damaged: remove it and register again/ }
    await assert.rejects(obtain(url, home), expected, text)
  }
  writeFileSync(path.join(home, 'identity.json'), JSON.stringify({ ...rest, privateKey }))
  assert.equal((await obtain(url, home)).privateKey.d, privateKey.d)
  assert.equal(asked.length, 1)
})
