import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { gaps, surroundings } from '../../tools/completeness.ts'

/** Tools that the contract names, for the operations that exist. */
const TOOLS = new Map([
  ['workflows.list', 'list_workflows'],
  ['workflows.create', 'create_workflow'],
  ['workflows.get', 'get_workflow'],
  ['workflows.file', 'get_workflow_file'],
  ['workflows.update', 'update_workflow'],
  ['workflows.listVersions', 'list_workflow_versions'],
  ['workflows.getVersion', 'get_workflow_version'],
  ['runs.trigger', 'trigger_now'],
  ['runs.list', 'list_runs'],
  ['runs.get', 'get_run'],
  ['runs.input', 'get_run_input'],
  ['runs.output', 'get_run_result'],
  ['runs.events', 'get_run_output'],
  ['runs.cancel', 'cancel_run'],
  ['runs.retry', 'retry_run'],
  ['inputs.list', 'list_pending_inputs'],
  ['inputs.respond', 'respond_to_input'],
  ['environments.list', 'list_environments'],
  ['environments.create', 'create_environment'],
  ['environments.delete', 'delete_environment'],
  ['variables.list', 'list_variables'],
  ['variables.set', 'create_variable'],
  ['variables.delete', 'delete_variable'],
  ['secrets.list', 'list_secret_names'],
  ['secrets.set', 'set_secret'],
  ['pools.list', 'list_runner_pools'],
  ['pools.create', 'create_runner_pool'],
  ['pools.createToken', 'create_runner_registration_token'],
  ['pools.listTokens', 'list_runner_registration_tokens'],
  ['pools.revokeToken', 'revoke_runner_registration_token'],
  ['runners.list', 'list_runners'],
  ['runners.get', 'get_runner'],
  ['keys.list', 'list_api_keys'],
  ['keys.create', 'create_api_key'],
  ['keys.revoke', 'revoke_api_key'],
  ['audit.list', 'list_audit'],
])

const whole = surroundings(TOOLS)
const without = <T>(set: ReadonlySet<T>, taken: T) => new Set([...set].filter((each) => each !== taken))

test('every operation has a handler, its tool, a command, words, an example and a line in the references', () => {
  assert.deepEqual(gaps(whole), [])
  assert.ok(whole.rows.length > 40)
})

test('a handler that is taken away is missed', () => {
  assert.match(gaps({ ...whole, served: without(whole.served, 'runs.why') }).join(), /^runs\.why has no handler/)
})

test('a tool that is taken away is missed, and so is an operation that the contract gives one', () => {
  assert.match(
    gaps({ ...whole, tools: without(whole.tools, 'cancel_run') }).join(),
    /^runs\.cancel has no tool cancel_run/,
  )
  const rows = whole.rows.filter((row) => row.id !== 'runs.cancel')
  assert.match(gaps({ ...whole, rows }).join(), /^runs\.cancel is gone/)
})

test('a command that is taken away is missed, derived or made by hand', () => {
  for (const [id, command] of [
    ['runs.restart', 'windlass runs restart'],
    ['workflows.create', 'windlass deploy'],
  ] as const) {
    const commands = new Map(whole.commands)
    assert.ok(commands.delete(command))
    assert.ok(
      gaps({ ...whole, commands }).some((gap) => gap.startsWith(`${id} has no command`)),
      id,
    )
  }
})

test('an example that is taken away is missed, and one that says nothing', () => {
  const hidden = (row: AnyOp) => (row.id === 'orgs.get' ? undefined : whole.exampleOf(row))
  assert.match(gaps({ ...whole, exampleOf: hidden }).join(), /orgs\.get has no example/)
  const silent = (row: AnyOp) => {
    const example = whole.exampleOf(row)
    return example && { ...example, about: row.id === 'orgs.get' ? ' ' : example.about }
  }
  assert.match(gaps({ ...whole, exampleOf: silent }).join(), /^orgs\.get has no description/)
})

test('a row without words is missed', () => {
  const rows = whole.rows.map((row) => (row.id === 'orgs.get' ? { ...row, summary: '' } : row))
  assert.match(gaps({ ...whole, rows }).join(), /^orgs\.get has no summary/)
})

test('a line that is taken out of a reference is missed', () => {
  for (const [file, line, id] of [
    ['rest.md', '### runs.get', 'runs.get'],
    ['mcp.md', '## get_run', 'runs.get'],
    ['cli.md', '## windlass logs', 'runs.stream'],
    ['cli.md', '## windlass env list', 'environments.list'],
  ] as const) {
    const documents = { ...whole.documents, [file]: whole.documents[file]!.replace(`\n${line}\n`, '\n') }
    assert.match(gaps({ ...whole, documents }).join(), new RegExp(`^${id} has no line`), file)
  }
})

test('a new row is missed everywhere until all of it is there', () => {
  const row: AnyOp = { ...whole.rows[0]!, id: 'workflows.archive' }
  const hidden = (one: AnyOp) => (one === row ? undefined : whole.exampleOf(one))
  const found = gaps({ ...whole, rows: [...whole.rows, row], exampleOf: hidden })
  for (const what of ['handler', 'command', 'example', 'description', 'line']) {
    assert.ok(
      found.some((gap) => gap.startsWith(`workflows.archive has no ${what}`)),
      what,
    )
  }
})
