import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { newId } from '@windlass/shared/ids.ts'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { ROLES, type Role, type Scope } from '@windlass/shared/scopes.ts'
import { aCoordinator, anOrg, aRun, type TestCoordinator, type TestOrg } from '../_kit/coordinator.ts'
import { aKey, aSession } from '../_kit/credentials.ts'
import { ask, ERAS, refusedBy, tool } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let stranger: TestOrg

const STUBS = ['create_api_key', 'set_secret']

interface Listed {
  name: string
  title: string
  description: string
  inputSchema: {
    properties: Record<string, { default?: unknown; description?: string }>
    required?: string[]
    additionalProperties?: boolean
  }
  outputSchema?: object
  annotations: Record<string, unknown>
}

interface Schema {
  properties?: Record<string, Schema>
  items?: Schema
  anyOf?: Schema[]
}

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  stranger = await anOrg(c)
})
after(() => c.stop())

async function listFor(apiKey: string, era: 'old' | 'new' = 'new'): Promise<Listed[]> {
  return (await ask({ url: c.url, apiKey }, 'tools/list', {}, era)).body.result.tools as Listed[]
}

const namesFor = async (role: Role, scopes: readonly Scope[] = []) =>
  (await listFor(await aKey(c.db, { orgId: c.orgId, role, scopes }))).map(({ name }) => name).sort()

test('an owner sees every tool that the table names, in either era', async () => {
  const named = allOps.flatMap((row) => (row.mcp ? [row.mcp.tool] : [])).sort()
  for (const era of ERAS) {
    const tools = await listFor(c.apiKey, era)
    assert.deepEqual(tools.map(({ name }) => name).sort(), named)
  }
})

test('each tool says what it is for, what it takes and what it does to the world', async () => {
  const ajv = new Ajv2020({ strict: false })
  for (const { name, title, description, inputSchema, outputSchema, annotations } of await listFor(c.apiKey)) {
    assert.match(title, /^[A-Z][A-Za-z ]+$/, name)
    assert.ok(description.length >= 40 && description.length <= 600, `${name}: ${description}`)
    ajv.compile(inputSchema)
    assert.equal(inputSchema.additionalProperties, false, name)
    assert.ok(!JSON.stringify(inputSchema).includes('$ref'), name)
    assert.ok(!inputSchema.required?.includes('org'), name)
    for (const [field, { description: meaning }] of Object.entries(inputSchema.properties))
      assert.ok(meaning, `${name} does not say what \`${field}\` is`)
    assert.equal(outputSchema === undefined, STUBS.includes(name), name)
    if (outputSchema) ajv.compile(outputSchema)
    for (const hint of ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'])
      assert.equal(typeof annotations[hint], 'boolean', `${name}: ${hint}`)
    if (annotations['readOnlyHint'] === true) assert.equal(annotations['destructiveHint'], false, name)
  }
})

test('the hints tell reading from changing, and changing from losing', async () => {
  const tools = new Map((await listFor(c.apiKey)).map((each) => [each.name, each.annotations]))
  const hints = (name: string) => {
    const { readOnlyHint, destructiveHint, idempotentHint, openWorldHint } = tools.get(name) ?? {}
    return [readOnlyHint, destructiveHint, idempotentHint, openWorldHint]
  }
  assert.deepEqual(hints('get_run'), [true, false, true, false])
  assert.deepEqual(hints('trigger_now'), [false, false, false, true])
  assert.deepEqual(hints('cancel_run'), [false, true, true, false])
  assert.deepEqual(hints('revoke_api_key'), [false, true, true, false])
  assert.deepEqual(hints('update_workflow'), [false, false, false, false])
})

test('a credential is shown what its role and scopes allow, and the stubs', async () => {
  const viewer = await namesFor('viewer')
  assert.ok(viewer.includes('get_run') && viewer.includes('create_api_key'))
  assert.ok(!viewer.includes('trigger_now') && !viewer.includes('list_audit'))
  assert.deepEqual(
    await namesFor('owner', ['run:read']),
    [
      ...STUBS,
      'explain_run',
      'get_run',
      'get_run_input',
      'get_run_output',
      'get_run_result',
      'list_pending_inputs',
      'list_runs',
    ].sort(),
  )
  const sizes = await Promise.all(ROLES.map(async (role) => (await namesFor(role)).length))
  assert.deepEqual(
    sizes,
    sizes.toSorted((a, b) => a - b),
  )
})

test('a tool that is not shown is refused with the reason when it is called', async () => {
  const base = (apiKey: string) => ({ url: c.url, apiKey })
  const viewer = base(await aKey(c.db, { orgId: c.orgId, role: 'viewer' }))
  const { value } = await tool(viewer, 'trigger_now', { workflow: 'any' })
  assert.equal(value.error.code, 'FORBIDDEN')
  assert.match(value.error.message, /role member; the key has viewer/)
  assert.match(value.next, /ask the person/)
  const scoped = base(await aKey(c.db, { orgId: c.orgId, scopes: ['run:read'] }))
  const { id: run } = await aRun(c, { workflow: 'any' })
  assert.match((await tool(scoped, 'cancel_run', { run })).value.error.message, /scope run:cancel/)
  assert.equal(await refusedBy(scoped, 'cancel_run', { run: newId('run') }), 'NOT_FOUND')
})

test('a stub does nothing, not even for a session, and says where it is done', async () => {
  const session = { url: c.url, apiKey: await aSession(c.db, { orgId: c.orgId }) }
  const count = () => c.db<[{ keys: number }]>`select count(*)::int as keys from api_keys`
  const [before] = await count()
  for (const [name, args] of [
    ['create_api_key', { name: 'mine', role: 'owner' }],
    ['set_secret', { name: 'TOKEN', value: 'canary' }],
  ] as const) {
    const { isError, value } = await tool(session, name, args)
    assert.deepEqual([isError, value.error.code], [true, 'FORBIDDEN'])
    assert.match(value.next, /`windlass (admin keys create|secrets set)/)
    assert.ok(!JSON.stringify(value).includes('canary'))
  }
  assert.deepEqual((await count())[0], before)
  const { structured } = await tool(session, 'list_secret_names')
  assert.deepEqual(structured.secrets, [])
})

test('the org may be left out or named, and another is not found', async () => {
  assert.equal((await tool(c, 'list_workflows')).structured.workflows[0].slug, 'any')
  assert.equal((await tool(c, 'list_workflows', { org: c.org })).structured.workflows.length, 1)
  for (const org of [stranger.slug, 'no-such', 5, null])
    assert.equal(await refusedBy(c, 'list_workflows', { org }), 'NOT_FOUND')
})

test('arguments are checked as REST checks them, and the field is named', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const wrong: [string, Record<string, unknown>, string][] = [
    ['trigger_now', {}, 'workflow'],
    ['trigger_now', { workflow: 'any', priority: 1000 }, 'priority'],
    ['trigger_now', { workflow: 'any', tags: 'x' }, 'tags'],
    ['trigger_now', { workflow: 'any', argz: 1 }, 'argz'],
    [
      'trigger_now',
      JSON.parse('{"workflow": "any", "__proto__": {}}') as object as Record<string, unknown>,
      '__proto__',
    ],
    ['trigger_now', { workflow: 'any', constructor: 1 }, 'constructor'],
    ['trigger_now', { workflow: 'any', environment: 'No Such' }, 'environment'],
    ['list_runs', { limit: '5' }, 'limit'],
    ['list_runs', { limit: 101 }, 'limit'],
    ['list_runs', { status: ['done'] }, 'status[0]'],
    ['list_runs', { cursor: 'nonsense' }, 'cursor'],
    ['get_run', {}, 'run'],
    ['get_run_output', { run: id, waitMs: 25_001 }, 'waitMs'],
    ['get_run_output', { run: id, since: -1 }, 'since'],
    ['respond_to_input', { input: newId('inp') }, 'answer'],
    ['create_workflow', { files: [] }, 'files'],
    ['create_variable', { name: 'A\0B', value: 'x' }, 'name'],
    ['cancel_run', { run: id, reason: 'a\0b' }, 'reason'],
    ['cancel_run', { run: id, reason: 'half \ud800' }, 'reason'],
  ]
  for (const [name, args, path] of wrong) assert.equal(await refusedBy(c, name, args), `VALIDATION_FAILED ${path}`)
  assert.equal(await refusedBy(c, 'get_run', { run: 'run_x' }), 'NOT_FOUND')
})

test('the words of a refusal are those of REST', async () => {
  const { value } = await tool(c, 'list_runs', { stauts: ['failed'] })
  const rest = (await (
    await fetch(`${c.url}/v1/orgs/${c.org}/runs?stauts=failed`, {
      headers: { authorization: `Bearer ${c.apiKey}` },
    })
  ).json()) as { error: object }
  assert.deepEqual(value.error, rest.error)
  assert.match(value.next, /detail\.path/)
})

test('`args` is another name of the input of a trigger, but not beside it', async () => {
  const { structured } = await tool(c, 'trigger_now', { workflow: 'any', args: { a: [1] } })
  assert.deepEqual((await tool(c, 'get_run_input', { run: structured.run.id })).structured, { input: { a: [1] } })
  assert.equal(await refusedBy(c, 'trigger_now', { workflow: 'any', args: 1, input: 1 }), 'VALIDATION_FAILED args')
})

test('the idempotency key of a trigger holds over REST and MCP', async () => {
  const fields = { workflow: 'any', input: 1, idempotencyKey: newId('req') }
  const first = await c.call(ops.runs.trigger, { org: c.org, ...fields })
  assert.equal((await tool(c, 'trigger_now', fields)).structured.run.id, first.run.id)
  assert.equal(await refusedBy(c, 'trigger_now', { ...fields, input: 2 }), 'IDEMPOTENCY_CONFLICT idempotencyKey')
})

test('a retry is sent again under its key over MCP, and there is one run', async () => {
  const { run } = await c.call(ops.runs.trigger, { org: c.org, workflow: 'any' })
  const fields = { run: run.id, idempotencyKey: newId('req') }
  const first = (await tool(c, 'retry_run', fields)).structured
  assert.equal((await tool(c, 'retry_run', fields)).structured.run.id, first.run.id)
  assert.equal(await refusedBy(c, 'retry_run', { ...fields, version: 1 }), 'IDEMPOTENCY_CONFLICT idempotencyKey')
})

test('what was done over MCP is told so: by the run, and by the audit log', async () => {
  const { run } = (await tool(c, 'trigger_now', { workflow: 'any' })).structured
  assert.equal(run.trigger.kind, 'mcp')
  await tool(c, 'cancel_run', { run: run.id, reason: 'enough' })
  const asked = { action: ['runs.cancel'], target: run.id }
  const { auditEntries: entries } = (await tool(c, 'list_audit', asked)).structured
  assert.equal(entries.length, 1)
  assert.equal(entries[0].via, 'mcp')
})

test('a name that no tool has is an error of the protocol, with the nearest name', async () => {
  for (const era of ERAS) {
    const { body } = await ask(c, 'tools/call', { name: 'get_rum', arguments: {} }, era)
    assert.deepEqual(
      [body.error.code, body.error.message],
      [-32_602, 'There is no tool `get_rum`, did you mean `get_run`?'],
    )
  }
  for (const name of ['__proto__', 'constructor', 'toString', ''])
    assert.equal((await ask(c, 'tools/call', { name })).body.error.code, -32_602)
})

test('a call that is no call is an error of the protocol', async () => {
  for (const params of [{}, { name: 5 }, { name: 'list_runs', arguments: 'x' }, { name: 'list_runs', arguments: [] }]) {
    for (const era of ERAS) {
      const { body } = await ask(c, 'tools/call', params, era)
      assert.ok([-32_602, -32_020].includes(body.error?.code as number), JSON.stringify([params, body]))
    }
  }
})

test('whatever a tool answers fits its own schema', async () => {
  const ajv = new Ajv2020({ strict: false })
  const { id } = await aRun(c, { workflow: 'any' })
  const args: Record<string, Record<string, unknown>> = {
    get_run: { run: id },
    get_run_input: { run: id },
    get_run_output: { run: id },
    explain_run: { run: id },
    list_workflow_versions: { workflow: 'any' },
    list_runner_registration_tokens: { pool: 'default' },
    retry_run: { run: id },
    cancel_run: { run: id },
  }
  const lists = (await listFor(c.apiKey)).filter(({ name }) => name.startsWith('list_') || name in args)
  assert.ok(lists.length > 12)
  for (const { name, outputSchema } of lists) {
    const { isError, structured, value } = await tool(c, name, args[name])
    assert.equal(isError, false, `${name}: ${JSON.stringify(value)}`)
    assert.ok(ajv.validate(outputSchema!, structured), `${name}: ${ajv.errorsText()}`)
    assert.deepEqual(value, structured)
  }
})

test('what is deleted answers an empty object', async () => {
  await tool(c, 'create_environment', { name: 'short-lived' })
  const { structured, isError } = await tool(c, 'delete_environment', { environment: 'short-lived' })
  assert.deepEqual([structured, isError], [{}, false])
})

test('restart_run says that what has finished stays, unless the descriptor wants it otherwise', async () => {
  const { body } = await ask(c, 'tools/list')
  const { description } = body.result.tools.find(({ name }: { name: string }) => name === 'restart_run')
  assert.match(description, /What its earlier attempts have finished is taken over/)
  assert.doesNotMatch(description, /dropped/)
})

test('each argument of each tool has a type or says what it is, however deep', async () => {
  const silent: string[] = []
  const look = (at: string, schema: Schema): void => {
    for (const [name, each] of Object.entries(schema.properties ?? {})) {
      const says = ['type', 'anyOf', 'enum', 'const', 'description'].some((keyword) => keyword in each)
      if (!says) silent.push(`${at}.${name}`)
      look(`${at}.${name}`, each)
    }
    for (const each of [schema.items, ...(schema.anyOf ?? [])]) if (each) look(`${at}[]`, each)
  }
  for (const { name, inputSchema } of await listFor(c.apiKey)) look(name, inputSchema as Schema)
  assert.deepEqual(silent, [])
  const untold = (await listFor(c.apiKey)).flatMap(({ name, inputSchema: { properties } }) =>
    Object.entries(properties).flatMap(([field, { description }]) => (description ? [] : [`${name}.${field}`])),
  )
  assert.deepEqual(untold, [])
})
