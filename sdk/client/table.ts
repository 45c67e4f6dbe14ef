// Written by deploy/tools/sdk-types.ts; `npx node deploy/tools/sdk-types.ts` writes it anew.
import type { Route } from '@windlass/shared/ops/op.ts'

/** The operations of a caller by group, as far as a request needs them. `shared/ops` has the rest. */
export const table = {
  workflows: {
    list: { id: 'workflows.list', method: 'GET', path: '/v1/orgs/{org}/workflows' },
    create: { id: 'workflows.create', method: 'POST', path: '/v1/orgs/{org}/workflows' },
    get: { id: 'workflows.get', method: 'GET', path: '/v1/orgs/{org}/workflows/{workflow}' },
    file: { id: 'workflows.file', method: 'GET', path: '/v1/orgs/{org}/workflows/{workflow}/files/{path}' },
    update: { id: 'workflows.update', method: 'PUT', path: '/v1/orgs/{org}/workflows/{workflow}' },
    delete: { id: 'workflows.delete', method: 'DELETE', path: '/v1/orgs/{org}/workflows/{workflow}' },
    restore: { id: 'workflows.restore', method: 'POST', path: '/v1/orgs/{org}/workflows/{workflow}/restore' },
    disable: { id: 'workflows.disable', method: 'POST', path: '/v1/orgs/{org}/workflows/{workflow}/disable' },
    enable: { id: 'workflows.enable', method: 'POST', path: '/v1/orgs/{org}/workflows/{workflow}/enable' },
    listVersions: { id: 'workflows.listVersions', method: 'GET', path: '/v1/orgs/{org}/workflows/{workflow}/versions' },
    createVersion: {
      id: 'workflows.createVersion',
      method: 'POST',
      path: '/v1/orgs/{org}/workflows/{workflow}/versions',
    },
    promote: {
      id: 'workflows.promote',
      method: 'POST',
      path: '/v1/orgs/{org}/workflows/{workflow}/versions/{version}/promote',
    },
    getVersion: {
      id: 'workflows.getVersion',
      method: 'GET',
      path: '/v1/orgs/{org}/workflows/{workflow}/versions/{version}',
    },
  },
  runs: {
    trigger: { id: 'runs.trigger', method: 'POST', path: '/v1/orgs/{org}/workflows/{workflow}/runs' },
    list: { id: 'runs.list', method: 'GET', path: '/v1/orgs/{org}/runs' },
    get: { id: 'runs.get', method: 'GET', path: '/v1/runs/{run}' },
    input: { id: 'runs.input', method: 'GET', path: '/v1/runs/{run}/input' },
    output: { id: 'runs.output', method: 'GET', path: '/v1/runs/{run}/output' },
    events: { id: 'runs.events', method: 'GET', path: '/v1/runs/{run}/events' },
    stream: { id: 'runs.stream', method: 'GET', path: '/v1/runs/{run}/events/stream', wire: 'sse' },
    cancel: { id: 'runs.cancel', method: 'POST', path: '/v1/runs/{run}/cancel' },
    retry: { id: 'runs.retry', method: 'POST', path: '/v1/runs/{run}/retry' },
    children: { id: 'runs.children', method: 'GET', path: '/v1/runs/{run}/children' },
    why: { id: 'runs.why', method: 'GET', path: '/v1/runs/{run}/why' },
    restart: { id: 'runs.restart', method: 'POST', path: '/v1/runs/{run}/restart' },
  },
  events: {
    stream: { id: 'events.stream', method: 'GET', path: '/v1/orgs/{org}/events/stream', wire: 'sse' },
  },
  inputs: {
    list: { id: 'inputs.list', method: 'GET', path: '/v1/orgs/{org}/inputs' },
    get: { id: 'inputs.get', method: 'GET', path: '/v1/inputs/{input}' },
    respond: { id: 'inputs.respond', method: 'POST', path: '/v1/inputs/{input}/respond' },
  },
  environments: {
    list: { id: 'environments.list', method: 'GET', path: '/v1/orgs/{org}/environments' },
    create: { id: 'environments.create', method: 'POST', path: '/v1/orgs/{org}/environments' },
    delete: { id: 'environments.delete', method: 'DELETE', path: '/v1/orgs/{org}/environments/{environment}' },
  },
  variables: {
    list: { id: 'variables.list', method: 'GET', path: '/v1/orgs/{org}/variables' },
    set: { id: 'variables.set', method: 'PUT', path: '/v1/orgs/{org}/variables/{name}', inQuery: ['environment'] },
    delete: { id: 'variables.delete', method: 'DELETE', path: '/v1/orgs/{org}/variables/{name}' },
  },
  secrets: {
    list: { id: 'secrets.list', method: 'GET', path: '/v1/orgs/{org}/secrets' },
    set: {
      id: 'secrets.set',
      method: 'PUT',
      path: '/v1/orgs/{org}/secrets/{name}',
      sessionOnly: true,
      inQuery: ['environment'],
    },
    delete: { id: 'secrets.delete', method: 'DELETE', path: '/v1/orgs/{org}/secrets/{name}', sessionOnly: true },
  },
  pools: {
    list: { id: 'pools.list', method: 'GET', path: '/v1/orgs/{org}/runner-pools' },
    get: { id: 'pools.get', method: 'GET', path: '/v1/runner-pools/{pool}' },
    create: { id: 'pools.create', method: 'POST', path: '/v1/orgs/{org}/runner-pools' },
    update: { id: 'pools.update', method: 'PATCH', path: '/v1/runner-pools/{pool}' },
    delete: { id: 'pools.delete', method: 'DELETE', path: '/v1/runner-pools/{pool}' },
    demand: { id: 'pools.demand', method: 'GET', path: '/v1/orgs/{org}/runner-pools/{pool}/demand' },
    createToken: { id: 'pools.createToken', method: 'POST', path: '/v1/runner-pools/{pool}/registration-tokens' },
  },
  runners: {
    list: { id: 'runners.list', method: 'GET', path: '/v1/orgs/{org}/runners' },
    get: { id: 'runners.get', method: 'GET', path: '/v1/runners/{runner}' },
    plan: { id: 'runners.plan', method: 'GET', path: '/v1/runners/{runner}/drain' },
    cordon: { id: 'runners.cordon', method: 'POST', path: '/v1/runners/{runner}/cordon' },
    drain: { id: 'runners.drain', method: 'POST', path: '/v1/runners/{runner}/drain' },
    resume: { id: 'runners.resume', method: 'POST', path: '/v1/runners/{runner}/resume' },
    revoke: { id: 'runners.revoke', method: 'POST', path: '/v1/runners/{runner}/revoke' },
    deregister: { id: 'runners.deregister', method: 'DELETE', path: '/v1/runners/{runner}' },
  },
  keys: {
    list: { id: 'keys.list', method: 'GET', path: '/v1/orgs/{org}/api-keys' },
    create: { id: 'keys.create', method: 'POST', path: '/v1/orgs/{org}/api-keys', sessionOnly: true },
    revoke: { id: 'keys.revoke', method: 'DELETE', path: '/v1/orgs/{org}/api-keys/{key}' },
  },
  orgs: {
    get: { id: 'orgs.get', method: 'GET', path: '/v1/orgs/{org}' },
  },
  account: {
    get: { id: 'account.get', method: 'GET', path: '/v1/me' },
  },
  audit: {
    list: { id: 'audit.list', method: 'GET', path: '/v1/orgs/{org}/audit' },
  },
  service: {
    health: { id: 'service.health', method: 'GET', path: '/healthz' },
    ready: { id: 'service.ready', method: 'GET', path: '/readyz' },
    metrics: { id: 'service.metrics', method: 'GET', path: '/metrics', wire: 'bytes' },
    openapi: { id: 'service.openapi', method: 'GET', path: '/v1/openapi.json' },
    docs: { id: 'service.docs', method: 'GET', path: '/v1/docs', wire: 'bytes' },
    docsFile: { id: 'service.docsFile', method: 'GET', path: '/v1/docs/{file}', wire: 'bytes' },
    install: { id: 'service.install', method: 'GET', path: '/install.sh', wire: 'bytes' },
    download: { id: 'service.download', method: 'GET', path: '/downloads/{file}', wire: 'bytes' },
    workflowSchema: { id: 'service.workflowSchema', method: 'GET', path: '/schemas/workflow.json' },
    protectedResource: {
      id: 'service.protectedResource',
      method: 'GET',
      path: '/.well-known/oauth-protected-resource/mcp/v1',
    },
  },
} as const satisfies Record<string, Record<string, Route>>
