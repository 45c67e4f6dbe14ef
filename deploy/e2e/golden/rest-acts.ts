import { until } from '../_kit/until.ts'
import type { Act } from './golden-file.ts'
import { RestTranscript } from './rest.ts'
import { fleetActs } from './rest-fleet-acts.ts'
import { runActs } from './rest-run-acts.ts'
import { filesOf } from './transcript.ts'
import type { World } from './world.ts'

/** Everything that is asked over REST, in the org that is there for it. */
export function restActs(world: World): Promise<Act[]> {
  const rest = new RestTranscript(world, 'rest')
  return rest.whole(async () => {
    await credentialActs(rest)
    await workflowActs(rest)
    await runActs(rest)
    await settingActs(rest)
    await fleetActs(rest)
  })
}

export const nowhere = (rest: RestTranscript) => rest.act('a path that is none', 'GET /v1/nothing/here')

/** Acts about credentials and about paths that do not exist. */
async function credentialActs(rest: RestTranscript): Promise<void> {
  await rest.act('health', 'GET /healthz', { as: null })
  await rest.act('ready', 'GET /readyz', { as: null })
  await rest.actIn('openapi', 'GET /v1/openapi.json', operationsOf)
  await rest.act('whom a key stands for', 'GET /v1/me')
  await rest.act('whom a session stands for', 'GET /v1/me', { as: rest.org.session })
  await rest.act('the org', 'GET /v1/orgs/rest')
  await rest.act('no credential', 'GET /v1/orgs/rest/runs', { as: null })
  await rest.act('a credential that nobody made', 'GET /v1/orgs/rest/runs', { as: 'wl_nobody' })
  await rest.act('the org of others', 'GET /v1/orgs/mcp/runs')
  await rest.act('another org by header', 'GET /v1/me', { headers: { 'x-windlass-org': 'mcp' } })
  await nowhere(rest)
  await rest.act('a method that is none', 'PUT /v1/orgs/rest/runs', { body: {} })
  await rest.act('a request id of the caller', 'GET /v1/orgs/rest', { headers: { 'x-request-id': 'mine.1' } })
}

// oxlint-disable-next-line typescript/no-explicit-any -- a document of others, read as far as it is needed
function operationsOf(document: any): string {
  const operations = Object.entries<object>(document.paths).flatMap(([path, methods]) =>
    // oxlint-disable-next-line typescript/no-explicit-any -- as above
    Object.entries<any>(methods).map(([method, { operationId, parameters = [], responses, requestBody }]) =>
      [
        `${method.toUpperCase()} ${path} ${operationId}`,
        parameters
          .map((each: { name: string; required?: boolean }) => each.name + (each.required ? '' : '?'))
          .join(' '),
        requestBody ? 'body' : '',
        Object.keys(responses).join(' '),
      ]
        .filter((part) => part !== '')
        .join(' | '),
    ),
  )
  const schemas = Object.entries<{ properties?: object }>(document.components.schemas).map(
    ([name, { properties = {} }]) => `${name}: ${Object.keys(properties).join(' ')}`,
  )
  return [`openapi ${document.openapi}`, ...operations, ...schemas].join('\n')
}

async function workflowActs(rest: RestTranscript): Promise<void> {
  const greet = { slug: 'greet', description: 'Greets.' }
  const path = '/v1/orgs/rest/workflows'
  const broken = [
    { path: 'workflow.jsonc', content: '{ "slug": "broken" }' },
    { path: 'index.ts', content: 'export function run() {\n  return (\n}\n' },
  ]
  await rest.act('deploy', `POST ${path}`, { body: { files: filesOf('typed', { slug: 'greet' }) } })
  await rest.act('deploy what exists', `POST ${path}`, { body: { files: filesOf('typed', { slug: 'greet' }) } })
  await rest.act('deploy what does not build', `POST ${path}`, { body: { files: broken } })
  await rest.act('deploy with a wrong descriptor', `POST ${path}`, {
    body: { files: filesOf('typed', { slug: 'greet', timeout: 'soon', colour: 'red' }) },
  })
  await rest.act('deploy a path that leads out', `POST ${path}`, { body: { files: [{ path: '../x', content: '' }] } })
  await rest.act('deploy the next version', `PUT ${path}/greet`, { body: { files: filesOf('typed', greet) } })
  await rest.act('deploy under another slug', `PUT ${path}/greet`, { body: { files: filesOf('typed', { slug: 'x' }) } })
  await rest.act('list workflows', `GET ${path}`)
  await rest.act('get a workflow', `GET ${path}/greet`)
  await rest.act('get no workflow', `GET ${path}/absent`)
  await rest.act('list versions', `GET ${path}/greet/versions?limit=1`)
  await rest.act('get a version', `GET ${path}/greet/versions/1`)
}

async function settingActs(rest: RestTranscript): Promise<void> {
  const org = '/v1/orgs/rest'
  const { session } = rest.org
  await rest.act('make an environment', `POST ${org}/environments`, { body: { name: 'staging' } })
  await rest.act('make it again', `POST ${org}/environments`, { body: { name: 'staging' } })
  await rest.act('list environments', `GET ${org}/environments`)
  await rest.act('set a variable', `PUT ${org}/variables/REGION?environment=staging`, { body: { value: 'eu' } })
  await rest.act('set a name that is taken by us', `PUT ${org}/variables/PATH`, { body: { value: 'x' } })
  await rest.act('list variables', `GET ${org}/variables?environment=staging`)
  await rest.act('set a secret by a key', `PUT ${org}/secrets/TOKEN`, { body: { value: 'hunter2' } })
  await rest.act('set a secret', `PUT ${org}/secrets/TOKEN`, { body: { value: 'hunter2' }, as: session })
  await rest.act('list secrets', `GET ${org}/secrets`)
  await rest.act('delete a secret', `DELETE ${org}/secrets/TOKEN`, { as: session })
  await rest.act('delete a variable', `DELETE ${org}/variables/REGION?environment=staging`)
  await rest.act('delete it again', `DELETE ${org}/variables/REGION?environment=staging`)
  await rest.act('delete an environment', `DELETE ${org}/environments/staging`)

  const ask = { name: 'viewer', role: 'viewer', scopes: ['run:read'], expiresAt: Date.UTC(2090) }
  await rest.act('make a key by a key', `POST ${org}/api-keys`, { body: ask })
  const { apiKey, key } = await rest.act('make a key', `POST ${org}/api-keys`, { body: ask, as: session })
  await rest.act('a role that is too low', `POST ${org}/workflows/greet/runs`, { body: {}, as: key })
  await rest.act('a scope that is missing', `GET ${org}/workflows`, { as: key })
  // It is written down a moment later.
  const { client } = rest.org
  const usedAt = async () => (await client.keys.list({})).apiKeys.find(({ id }) => id === apiKey.id)?.lastUsedAt
  await until('the use of the key is noted', usedAt)
  await rest.act('list keys', `GET ${org}/api-keys`)
  await rest.act('revoke a key', `DELETE ${org}/api-keys/${apiKey.id}`)
  await rest.act('a key that was revoked', `GET ${org}/runs`, { as: key })
  await rest.act('the audit log', `GET ${org}/audit?action=variables.*,secrets.*,keys.*,environments.*`)
  await rest.act('the audit log of nothing', `GET ${org}/audit?target=greet&limit=1&action=runs.cancel`)
}
