// A day's work over MCP alone, by the official client of each era, on a real installation.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { fileInstance } from './_kit/file-instance.ts'
import { type Connect, type Hand, officialNew, officialOld } from './_kit/mcp-clients.ts'

const instance = fileInstance({ programs: [] })

const program = (repaired: boolean) => `
import { log, requestInput, sleep } from 'windlass'

export interface Input {
  mode: 'ask' | 'sleep' | 'fail'
}

export async function run({ mode }: Input): Promise<{ said: string; greeting: string | undefined }> {
  log('begun')
  if (mode === 'sleep') await sleep('1h')
  if (mode === 'fail' && !${repaired}) throw new Error('not yet written')
  const said = mode === 'ask' ? await ask() : mode
  return { said, greeting: process.env['GREETING'] }
}

async function ask(): Promise<string> {
  const schema = { type: 'object', properties: { word: { type: 'string' } }, required: ['word'] } as const
  const { word } = (await requestInput({ prompt: 'Which word?', schema })) as { word: string }
  return word
}
`

const filesOf = (slug: string, repaired: boolean) => [
  { path: 'workflow.jsonc', content: JSON.stringify({ slug, name: `Day of ${slug}` }) },
  { path: 'index.ts', content: program(repaired) },
]

interface Event {
  cursor: number
  type: string
  data: Record<string, unknown>
}

/** Reads on until an event of this type has come, and fails when the run is over before. */
async function follow(hand: Hand, run: string, type: string): Promise<Event[]> {
  const events: Event[] = []
  for (;;) {
    const since = events.at(-1)?.cursor ?? 0
    const channels = ['lifecycle', 'phase', 'output', 'log']
    const { value } = await hand.call('get_run_output', { run, since, channels, waitMs: 25_000 })
    events.push(...(value.events as Event[]))
    if (events.some((event) => event.type === type)) return events
    assert.equal(value.done, false, `${run} ended without ${type}: ${JSON.stringify(events)}`)
  }
}

for (const [era, connect] of Object.entries({ '2025': officialOld, '2026': officialNew } satisfies Record<
  string,
  Connect
>)) {
  test(`a day's work in the words of ${era}`, { timeout: 180_000 }, async (t) => {
    const hand = await connect(instance.current().access)
    t.after(() => hand.close())
    const done = async (name: string, args: Record<string, unknown> = {}) => {
      const { isError, value } = await hand.call(name, args)
      assert.equal(isError, false, `${name}: ${JSON.stringify(value)}`)
      return value
    }
    const refused = async (name: string, args: Record<string, unknown>) => {
      const { isError, value } = await hand.call(name, args)
      assert.equal(isError, true, `${name} was not refused`)
      return value as { error: { code: string; message: string; detail?: { path?: string } }; next: string }
    }
    const slug = `day-${era}`
    const environment = `staging-${era}`

    // Morning: what is there, and where it can run.
    assert.ok((await hand.tools()).includes('trigger_now'))
    assert.ok((await done('list_runners')).runners.some(({ status }: { status: string }) => status === 'online'))
    assert.equal((await done('list_runner_pools')).runnerPools[0].name, 'default')

    // A workflow that does not build is refused with its place, one that does is deployed.
    const broken = filesOf(slug, false).map((file) => ({
      ...file,
      content: file.content.replace('await ask()', 'await'),
    }))
    const error = await refused('create_workflow', { files: broken })
    assert.equal(error.error.code, 'VALIDATION_FAILED')
    assert.match(JSON.stringify(error), /index\.ts/)
    assert.equal((await done('create_workflow', { files: filesOf(slug, false) })).version.version, 1)
    assert.equal((await refused('create_workflow', { files: filesOf(slug, false) })).error.code, 'WORKFLOW_EXISTS')
    const { version } = await done('get_workflow', { workflow: slug })
    assert.deepEqual(version.inputSchema.required, ['mode'])

    // A place of its own, with a variable. Secrets are for people.
    await done('create_environment', { name: environment })
    await done('create_variable', { name: 'GREETING', value: `hello ${era}`, environment })
    assert.equal((await done('list_variables', { environment })).variables[0].value, `hello ${era}`)
    assert.match((await refused('set_secret', { name: 'TOKEN', value: 'x' })).next, /windlass secrets set/)

    // A run that asks, is answered wrongly, then rightly.
    const asking = (await done('trigger_now', { workflow: slug, args: { mode: 'ask' }, environment })).run
    assert.equal(asking.status, 'queued')
    await follow(hand, asking.id, 'run.awaiting_input')
    assert.equal((await done('explain_run', { run: asking.id })).why.causes[0].code, 'INPUT')
    const [question] = (await done('list_pending_inputs', { run: asking.id })).inputs
    assert.equal(question.prompt, 'Which word?')
    const misfit = await refused('respond_to_input', { input: question.id, answer: { word: 5 } })
    assert.match(misfit.error.detail?.path ?? '', /^answer/)
    await done('respond_to_input', { input: question.id, answer: { word: 'yes' } })
    const events = await follow(hand, asking.id, 'run.completed')
    assert.ok(events.some(({ type, data }) => type === 'log.stdout' && JSON.stringify(data).includes('begun')))
    assert.deepEqual(outputIn(events), { said: 'yes', greeting: `hello ${era}` })
    assert.equal(
      (await refused('respond_to_input', { input: question.id, answer: { word: 'no' } })).error.code,
      'INPUT_CLOSED',
    )
    assert.match(await hand.read(`windlass://runs/${asking.id}/events`), /log\.stdout begun[^]*run\.completed/)

    // One that fails, is looked into, mended and run again with the same input.
    const failing = (await done('trigger_now', { workflow: slug, input: { mode: 'fail' } })).run
    await follow(hand, failing.id, 'run.failed')
    assert.match((await done('get_run', { run: failing.id })).run.error.message, /not yet written/)
    assert.equal((await refused('cancel_run', { run: failing.id })).error.code, 'RUN_ALREADY_FINISHED')
    assert.deepEqual((await done('get_run_input', { run: failing.id })).input, { mode: 'fail' })
    assert.equal((await done('update_workflow', { workflow: slug, files: filesOf(slug, true) })).version.version, 2)
    assert.equal((await done('list_workflow_versions', { workflow: slug })).versions.length, 2)
    const again = (await done('retry_run', { run: failing.id })).run
    assert.deepEqual([again.retryOf, again.workflow.version], [failing.id, 2])
    assert.deepEqual(outputIn(await follow(hand, again.id, 'run.completed')), { said: 'fail' })

    // One that would sleep for long is explained, and stopped.
    const sleeping = (await done('trigger_now', { workflow: slug, input: { mode: 'sleep' } })).run
    await follow(hand, sleeping.id, 'run.sleeping')
    assert.equal((await done('explain_run', { run: sleeping.id })).why.causes[0].code, 'SLEEP')
    await done('cancel_run', { run: sleeping.id, reason: 'the day is over' })
    await follow(hand, sleeping.id, 'run.cancelled')
    const { runs } = await done('list_runs', { workflow: slug, status: ['failed', 'cancelled'] })
    assert.deepEqual(new Set(runs.map(({ id }: { id: string }) => id)), new Set([failing.id, sleeping.id]))

    // Evening: who did all that.
    const { auditEntries: entries } = await done('list_audit', { limit: 100 })
    const mine = entries
      .filter(({ via }: { via: string }) => via === 'mcp')
      .map(({ action }: { action: string }) => action)
    for (const action of [
      'workflows.create',
      'workflows.update',
      'inputs.respond',
      'runs.cancel',
      'runs.retry',
      'environments.create',
    ])
      assert.ok(mine.includes(action), `${action} is not in the audit log`)
    await done('delete_variable', { name: 'GREETING', environment })
    await done('delete_environment', { environment })
  })
}

function outputIn(events: readonly Event[]): unknown {
  const { data } = events.find(({ type }) => type === 'output')!
  return data['output'] ?? data['value']
}
