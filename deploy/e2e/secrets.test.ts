// Secrets go into programs and come out nowhere: words that nothing else contains are planted as secrets, told by a program in
// every way it has, and looked for in all that is kept or shown.
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import type { Run } from '@windlass/shared/model/run.ts'
import { type Client, createClient } from 'windlass/client'
import { aCanary, dumpOf, filesWith, seenIn, startOf } from './_kit/canaries.ts'
import { questionsOf } from './_kit/durable.ts'
import { fileInstance } from './_kit/file-instance.ts'
import { ended, get, textsOf, wholeLog } from './_kit/runs.ts'
import { until } from './_kit/until.ts'

const SECRET_KEY = randomBytes(32).toString('base64')
/** Whatever waits is given up at once, so that all that goes on is replayed in a new process. */
const { current, database } = fileInstance({
  programs: ['leaks', 'pins'],
  env: { WINDLASS_SECRET_KEY: SECRET_KEY, WINDLASS_AGENT_PARKED_MS: '0' },
})

const canaries = Array.from({ length: 6 }, aCanary)
const [inKey, inUrl, first, second, third, inStaging] = canaries as [string, string, string, string, string, string]

const CANARIES = {
  CANARY_KEY: `k"${inKey}\\é+/= %日`,
  CANARY_URL: `postgres://me:p@ss${inUrl}&x='y'`,
  CANARY_PEM: `-----BEGIN KEY-----\n${first}\n  ${second}\nQ==\n${third}\n-----END KEY-----\n`,
}

/** As the operator, whose session may do what a key may not. */
function operator(): Client {
  const { session, ...access } = JSON.parse(readFileSync(join(current().home, 'cli.json'), 'utf8')) as Record<
    string,
    string
  >
  return createClient({ url: String(access['url']), org: String(access['org']), apiKey: String(session) })
}

async function put(secrets: Record<string, string>, environment?: string): Promise<void> {
  for (const [name, value] of Object.entries(secrets)) {
    await operator().secrets.set({ name, value, ...(environment !== undefined && { environment }) })
  }
}

async function begin(workflow: string, input: unknown, environment?: string): Promise<string> {
  const more = environment === undefined ? {} : { environment }
  return (await current().client.runs.trigger({ workflow, input, ...more })).run.id
}

async function answer(run: string): Promise<void> {
  const { client } = current()
  const [question] = await questionsOf(client, run)
  assert.ok(question)
  // Its process is gone by then, so that what follows is in a new one.
  await until('the process to be given up', async () => {
    const [row] = await database().db<{ place: string | null }[]>`select place from runs where id = ${run}`
    return row?.place === null
  })
  await client.inputs.respond({ input: question.id, answer: true })
}

/** All that the API shows of a run. */
async function shownOf(client: Client, run: Run): Promise<string> {
  const { url, apiKey } = current().access
  const asked = [
    client.runs.get({ run: run.id }),
    client.runs.input({ run: run.id }),
    client.runs.output({ run: run.id }).catch((error: unknown) => String(error)),
    client.runs.why({ run: run.id }),
    client.runs.children({ run: run.id }),
    wholeLog(client, run.id),
    sse(`${url}/v1/runs/${run.id}/events/stream?channels=lifecycle,phase,output,log`, apiKey),
    mcp('get_run', { run: run.id }),
    mcp('get_run_output', { run: run.id, channels: ['lifecycle', 'phase', 'output', 'log'] }),
  ]
  return JSON.stringify(await Promise.all(asked))
}

async function sse(url: string, apiKey: string): Promise<string> {
  const headers = { authorization: `Bearer ${apiKey}`, accept: 'text/event-stream' }
  return await (await fetch(url, { headers, signal: AbortSignal.timeout(20_000) })).text()
}

async function mcp(name: string, args: object): Promise<string> {
  const { url, apiKey } = current().access
  const response = await fetch(`${url}/mcp/v1`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name, arguments: args } }),
    signal: AbortSignal.timeout(20_000),
  })
  const text = await response.text()
  assert.equal(response.status, 200, text)
  assert.ok(!text.includes('"isError":true'), text)
  return text
}

test('secrets that a program tells in every way are nowhere but in the program', async () => {
  const { client, home, process } = current()
  await put(CANARIES)
  await operator().environments.create({ name: 'staging' })
  await put({ CANARY_KEY: `staging ${inStaging}` }, 'staging')

  // Looked for in the same places, and found: that nothing else is found there means something.
  const note = aCanary()
  const calls = await begin('leaks', { ends: 'calling', note })
  const others = [
    await begin('leaks', { ends: 'throwing' }),
    await begin('leaks', { ends: 'dying' }),
    await begin('leaks', { ends: 'returning' }, 'staging'),
  ]
  const questions = await questionsOf(client, calls)
  assert.match(questions[0]?.prompt ?? '', /^Is \*\*\* right\? \*\*\*/)
  assert.deepEqual(
    startOf(home).filter((text) => seenIn(text, canaries).length > 0),
    [],
  )
  await answer(calls)

  const done = await ended(client, calls)
  assert.equal(done.status, 'completed', JSON.stringify(done.error))
  const { output } = await client.runs.output({ run: calls })
  const { all, child } = output as { all: object; child: { message: string } }
  assert.deepEqual(all, { CANARY_KEY: '***', CANARY_URL: '***', CANARY_PEM: '***\n' })
  assert.match(child.message, /\*\*\*/)

  const runs = await Promise.all(others.map((run) => ended(client, run)))
  assert.deepEqual(
    runs.map((run) => [run.status, run.error?.code]),
    [
      ['failed', 'PROGRAM_FAILED'],
      ['failed', 'RUN_CRASHED'],
      ['completed', undefined],
    ],
  )
  const texts = textsOf(await wholeLog(client, others[2]!))
  for (const text of ['CANARY_KEY ***', '***', 'raw ***', 'CANARY_KEY=***', 'hex ***', 'log ***']) {
    assert.ok(texts.includes(text), `${text} in ${texts.join('\n')}`)
  }

  const { runs: everyRun } = await client.runs.list({ limit: 100 })
  assert.equal(everyRun.length, 5)
  for (const run of everyRun) {
    const shown = await shownOf(client, run)
    assert.deepEqual(seenIn(shown, canaries), [], run.id)
    assert.equal(seenIn(shown, [note]).length > 0, run.id === calls)
  }
  const lists = [client.inputs.list({ limit: 100 }), operator().secrets.list({}), operator().audit.list({ limit: 100 })]
  assert.deepEqual(seenIn(JSON.stringify(await Promise.all(lists)), canaries), [])
  const dumps = await dumpOf(database().db)
  for (const [table, dump] of dumps) assert.deepEqual(seenIn(dump, canaries), [], table)
  const noted = [...dumps].filter(([, dump]) => seenIn(dump, [note]).length > 0).map(([table]) => table)
  assert.deepEqual(noted.sort(), ['public.run_events', 'public.runs'])
  assert.deepEqual(seenIn(process.stdout() + process.stderr(), canaries), [])
  assert.deepEqual(filesWith(home, canaries), [])
})

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex')

test('variables stay as they were at the first start, secrets are as they are now, and both values stay hidden', async () => {
  const { client } = current()
  const [before, after] = [aCanary(), aCanary()]
  await put({ PINNED_SECRET: before })
  await operator().variables.set({ name: 'PINNED_VARIABLE', value: 'first' })
  const calm = await begin('pins', {})
  const dies = await begin('pins', { dies: true })
  await Promise.all([calm, dies].map((run) => questionsOf(client, run)))
  await put({ PINNED_SECRET: after })
  await operator().variables.set({ name: 'PINNED_VARIABLE', value: 'second' })

  await Promise.all([calm, dies].map(answer))
  assert.equal((await ended(client, calm)).status, 'completed')
  const { output } = await client.runs.output({ run: calm })
  assert.deepEqual(output, { variable: 'first', secret: sha256(after), attempt: 1 })

  // It has begun anew after its death, with what it was given at first, and asks again: its prompt is another one by now.
  await until('it to ask again', async () => {
    const { status, attempt } = await get(client, dies)
    return attempt === 2 && status === 'awaiting_input'
  })
  await answer(dies)
  assert.equal((await ended(client, dies)).status, 'completed')
  const { output: second } = await client.runs.output({ run: dies })
  assert.deepEqual(second, { variable: 'first', secret: sha256(after), attempt: 2 })

  const fresh = await begin('pins', {})
  await answer(fresh)
  await ended(client, fresh)
  assert.deepEqual((await client.runs.output({ run: fresh })).output, {
    variable: 'second',
    secret: sha256(after),
    attempt: 1,
  })
  for (const run of [calm, dies, fresh]) {
    const events = await wholeLog(client, run)
    assert.ok(textsOf(events).includes('now ***'))
    assert.deepEqual(seenIn(JSON.stringify(events), [before, after]), [])
  }
  for (const [table, dump] of await dumpOf(database().db)) {
    assert.deepEqual(seenIn(dump, [before, after]), [], table)
  }
})

test('what an environment says of a name goes before what the org says', async () => {
  const { client } = current()
  await operator().environments.create({ name: 'production' })
  await put({ PINNED_SECRET: 'that of the org' })
  await put({ PINNED_SECRET: 'that of production' }, 'production')
  await operator().variables.set({ name: 'PINNED_VARIABLE', value: 'of production', environment: 'production' })
  const run = await begin('pins', {}, 'production')
  await answer(run)
  await ended(client, run)
  assert.deepEqual((await client.runs.output({ run })).output, {
    variable: 'of production',
    secret: sha256('that of production'),
    attempt: 1,
  })
})
