import type { Act } from './golden-file.ts'
import { filesOf, Transcript } from './transcript.ts'
import type { World } from './world.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- an act takes from an answer what the next one needs
type Answer = any

/** What a client of MCP sends by hand, and what comes back. */
class McpTranscript extends Transcript {
  #count = 0

  async call(name: string, tool: string, args: object = {}): Promise<Answer> {
    const { result } = await this.say(name, 'tools/call', { name: tool, arguments: args })
    return result?.structuredContent
  }

  async say(name: string, method: string, params: object, part = (result: Answer): unknown => result): Promise<Answer> {
    const message = { jsonrpc: '2.0', id: ++this.#count, method, params }
    const response = await this.send({ body: JSON.stringify(message) })
    const answer = (await response.json()) as Answer
    const { result, error } = answer
    const shown = error ? { error } : { result: part(withoutTwin(result)) }
    this.add(name, `> ${method} ${this.asked(params)}`, `< ${response.status}`, this.json(shown))
    return answer
  }

  async sendPlain(name: string, init: RequestInit, as: string | null = this.org.apiKey): Promise<void> {
    const response = await this.send(init, as)
    const shown = ['allow', 'www-authenticate'].flatMap((header) => {
      const value = response.headers.get(header)
      return value === null ? [] : [`< ${header}: ${this.names.text(value)}`]
    })
    this.add(name, `> ${init.method ?? 'POST'}`, `< ${response.status}`, ...shown, this.json(await response.json()))
  }

  send(init: RequestInit, as: string | null = this.org.apiKey): Promise<Response> {
    return fetch(`${this.org.url}/mcp/v1`, {
      method: 'POST',
      ...init,
      headers: {
        ...(as !== null && { authorization: `Bearer ${as}` }),
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2025-06-18',
        ...(init.headers as Record<string, string>),
      },
    })
  }
}

/** The answer of a tool is there twice, as fields and as text: written down once where both say the same. */
function withoutTwin(result: Answer): unknown {
  if (!result?.structuredContent || result.content?.length !== 1) return result
  const isTwin = result.content[0].text === JSON.stringify(result.structuredContent)
  return isTwin ? { ...result, content: 'as below' } : result
}

export function mcpActs(world: World): Promise<Act[]> {
  const mcp = new McpTranscript(world, 'mcp')
  return mcp.whole(async () => {
    await protocolActs(mcp)
    await workflowActs(mcp)
    await runActs(mcp)
    await settingActs(mcp)
  })
}

const NOTHING = '{"jsonrpc":"2.0","id":1,"method":"ping"}'

async function protocolActs(mcp: McpTranscript): Promise<void> {
  const clientInfo = { name: 'golden', version: '1' }
  await mcp.say('initialize', 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo })
  await mcp.say('list tools', 'tools/list', {}, ({ tools }) =>
    tools.map(({ name, inputSchema, annotations }: Answer) => {
      const required: string[] = inputSchema.required ?? []
      const fields = Object.keys(inputSchema.properties).map((each) => (required.includes(each) ? each : `${each}?`))
      const hints = Object.entries(annotations).filter(([, value]) => value === true)
      return [name, ...fields, ...hints.map(([hint]) => `(${hint})`)].join(' ')
    }),
  )
  await mcp.say('list templates of resources', 'resources/templates/list', {})
  await mcp.say('a method that is none', 'tools/dream', {})
  await mcp.sendPlain('no credential', { body: NOTHING }, null)
  await mcp.sendPlain('another method of HTTP', { method: 'GET' })
  await mcp.sendPlain('the page of a stranger', { body: NOTHING, headers: { origin: 'https://elsewhere.example' } })
  await mcp.sendPlain('what is no JSON', { body: '{' })
}

async function workflowActs(mcp: McpTranscript): Promise<void> {
  await mcp.call('create a workflow', 'create_workflow', { files: filesOf('typed', { slug: 'greet' }) })
  await mcp.call('create it again', 'create_workflow', { files: filesOf('typed', { slug: 'greet' }) })
  await mcp.call('get a workflow', 'get_workflow', { workflow: 'greet' })
  await mcp.call('get a file', 'get_workflow_file', { workflow: 'greet', path: 'index.ts' })
  await mcp.call('list workflows', 'list_workflows')
}

async function runActs(mcp: McpTranscript): Promise<void> {
  await mcp.org.client.workflows.create({ files: filesOf('plays', { slug: 'plays' }) })
  const input = { name: 'Ada' }
  const { run } = await mcp.call('trigger', 'trigger_now', { workflow: 'greet', input, tags: ['by-model'] })
  await mcp.ended(run.id)
  await mcp.call('trigger with what does not fit', 'trigger_now', { workflow: 'greet', args: { name: 7 } })
  await mcp.call('get a run', 'get_run', { run: run.id })
  await mcp.call('get its output', 'get_run_output', { run: run.id, since: 2, waitMs: 1000 })
  await mcp.call('get its input', 'get_run_input', { run: run.id })
  const { run: again } = await mcp.call('retry', 'retry_run', { run: run.id })
  await mcp.ended(again.id)
  await mcp.call('list runs', 'list_runs', { tag: 'by-model', limit: 1 })
  await mcp.call('cancel what has ended', 'cancel_run', { run: run.id })

  const { run: asking } = await mcp.org.client.runs.trigger({ workflow: 'plays', input: { play: 'asks' } })
  const stage = mcp.watch(asking.id)
  await stage.sees('run.awaiting_input')
  await mcp.call('explain a run', 'explain_run', { run: asking.id })
  const { inputs } = await mcp.call('list questions', 'list_pending_inputs')
  const ask = { input: inputs[0].id }
  await mcp.call('answer what does not fit', 'respond_to_input', { ...ask, answer: 'yes' })
  await mcp.call('answer', 'respond_to_input', { ...ask, answer: { approved: false } })
  await stage.over()
  await mcp.say('read a log', 'resources/read', { uri: `windlass://runs/${asking.id}/events` })
  await mcp.say('read a file', 'resources/read', { uri: 'windlass://workflows/greet/files/index.ts' })
}

async function settingActs(mcp: McpTranscript): Promise<void> {
  await mcp.call('set a variable', 'create_variable', { name: 'REGION', value: 'eu' })
  await mcp.call('list variables', 'list_variables')
  await mcp.call('set a secret', 'set_secret', { name: 'TOKEN' })
  await mcp.call('make a key', 'create_api_key', { name: 'ci', role: 'member' })
  await mcp.call('list runners', 'list_runners')
  await mcp.call('list the audit log', 'list_audit', { action: ['variables.*'], limit: 5 })
  await mcp.call('a tool that is none', 'make_coffee')
  await mcp.call('a field that is none', 'list_runs', { colour: 'red' })
}
