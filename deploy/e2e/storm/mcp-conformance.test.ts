// MCP's own suite against /mcp/v1: what the service offers on the service itself, and how it speaks on a stand-in
// for its tools that has what the suite wants to find. What is left out is named, with the reason.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { createHandlers } from '@windlass/coordinator/api/index.ts'
import { startServer, type RunningServer } from '@windlass/coordinator/http/server.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../../../coordinator/test/_kit/coordinator.ts'
import { filesOf } from '../../../coordinator/test/_kit/workflow-files.ts'
import { type Check, type Found, runSuite, withCredential } from '../_kit/conformance.ts'
import { conformanceSurface } from '../_kit/conformance-surface.ts'

interface Plan {
  /** Scenarios that the service itself has to pass. */
  service: readonly string[]
  /** Scenarios that want tools and resources of their own. */
  standIn: readonly string[]
  leftOut: Readonly<Record<string, string>>
  /** Single checks of the above that cannot be made, with the reason. */
  leftOutChecks: Readonly<Record<string, string>>
}

const NO_PROMPTS = 'there are no prompts, and the capability is not announced'
const NO_LOGGING = 'nothing is logged to clients, and the capability is not announced'
const NO_QUESTIONS = 'no tool asks the client anything: a run asks by way of list_pending_inputs'
const NO_STREAMS = 'every answer is one JSON text: no stream is opened, so none can be polled or broken'
const NO_SUBSCRIPTIONS = 'resources are read again, not watched; the capability is not announced'
const NO_SESSIONS = 'there are no sessions: any coordinator answers any request'

const SAYING = [
  'tools-call-simple-text',
  'tools-call-image',
  'tools-call-audio',
  'tools-call-embedded-resource',
  'tools-call-mixed-content',
  'tools-call-error',
  'json-schema-2020-12',
  'resources-read-text',
  'resources-read-binary',
  'resources-templates-read',
]

const PROMPTS = Object.fromEntries(
  ['list', 'get-simple', 'get-with-args', 'get-embedded-resource', 'get-with-image'].map((name) => [
    `prompts-${name}`,
    NO_PROMPTS,
  ]),
)

const INPUT_REQUIRED = Object.fromEntries(
  [
    'basic-elicitation',
    'basic-sampling',
    'basic-list-roots',
    'request-state',
    'multiple-input-requests',
    'multi-round',
    'missing-input-response',
    'non-tool-request',
    'result-type',
    'tampered-state',
    'capability-check',
    'ignore-extra-params',
    'validate-input',
  ].map((name) => [`input-required-result-${name}`, NO_QUESTIONS]),
)

const PLANS: Readonly<Record<string, Plan>> = {
  '2025-11-25': {
    service: [
      'server-initialize',
      'ping',
      'completion-complete',
      'tools-list',
      'resources-list',
      'dns-rebinding-protection',
    ],
    standIn: SAYING,
    leftOut: {
      ...PROMPTS,
      'server-session-lifecycle': NO_SESSIONS,
      'logging-set-level': NO_LOGGING,
      'tools-call-with-logging': NO_LOGGING,
      'tools-call-with-progress': NO_STREAMS,
      'tools-call-sampling': NO_QUESTIONS,
      'tools-call-elicitation': NO_QUESTIONS,
      'elicitation-sep1034-defaults': NO_QUESTIONS,
      'elicitation-sep1330-enums': NO_QUESTIONS,
      'server-sse-polling': NO_STREAMS,
      'server-sse-multiple-streams': NO_STREAMS,
      'resources-subscribe': NO_SUBSCRIPTIONS,
      'resources-unsubscribe': NO_SUBSCRIPTIONS,
    },
    leftOutChecks: {},
  },
  '2026-07-28': {
    service: [
      'completion-complete',
      'tools-list',
      'resources-list',
      'sep-2164-resource-not-found',
      'dns-rebinding-protection',
      'caching',
      'http-header-validation',
      'input-required-result-unsupported-methods',
      'server-sse-multiple-streams',
    ],
    standIn: [...SAYING, 'server-stateless'],
    leftOut: {
      ...PROMPTS,
      ...INPUT_REQUIRED,
      'tools-call-with-progress': NO_STREAMS,
      'http-custom-header-server-validation': 'no tool wants one of its arguments in a header',
    },
    leftOutChecks: {
      'sep-2549-prompts-list-caching-hints': NO_PROMPTS,
      'sep-2575-server-rejects-undeclared-capability': NO_QUESTIONS,
      'sep-2575-missing-capability-http-400': NO_QUESTIONS,
      'sep-2575-http-server-no-independent-requests-on-stream': NO_STREAMS,
    },
  },
}

let c: TestCoordinator
let standIn: RunningServer
const proxies: Awaited<ReturnType<typeof withCredential>>[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "hello" }', 'index.ts': 'export const run = () => 1' })
  await c.call(ops.workflows.create, { org: c.org, files })
  await aRun(c, { workflow: 'hello' })
  const { deps, orgId } = c
  const caller = { kind: 'key', id: 'suite', name: 'suite', orgId, org: c.org, role: 'owner', scopes: [] } as const
  const verify = {
    knows: () => true,
    caller: () => Promise.resolve(caller),
    runner: () => Promise.reject(new Error('no runner comes here')),
    program: () => Promise.reject(new Error('no program comes here')),
  }
  const at = { host: '127.0.0.1', port: 0, surface: conformanceSurface }
  standIn = await startServer({ handlers: createHandlers(deps), deps, log: deps.log, verify, ...at })
  proxies.push(await withCredential(c.url, c.apiKey), await withCredential(`http://127.0.0.1:${standIn.port}`, 'any'))
})
after(async () => {
  for (const proxy of proxies) proxy.close()
  await standIn.close()
  await c.stop()
})

for (const [revision, plan] of Object.entries(PLANS)) {
  test(`${revision}: the service and how it speaks pass the suite`, async (t) => {
    const [service, stood] = await Promise.all(proxies.map(({ url }) => runSuite(`${url}/mcp/v1`, revision)))
    const planned = [...plan.service, ...plan.standIn, ...Object.keys(plan.leftOut)]
    assert.deepEqual([...service!.keys()].sort(), planned.sort(), 'the suite has other scenarios than those planned')
    const wrong = [...wrongIn(service!, plan.service, plan), ...wrongIn(stood!, plan.standIn, plan)]
    assert.deepEqual(wrong, [])
    t.diagnostic(
      `${plan.service.length + plan.standIn.length} scenarios pass, ${Object.keys(plan.leftOut).length} are left out`,
    )
  })
}

function wrongIn(found: Found, scenarios: readonly string[], plan: Plan): string[] {
  return scenarios.flatMap((scenario) => {
    const checks = found.get(scenario) ?? []
    const isEmpty = !checks.some(({ status }) => status === 'SUCCESS')
    return [
      ...(isEmpty ? [`${scenario}: nothing in it was a success`] : []),
      ...checks.flatMap((check) => wrongAt(scenario, check, plan)),
    ]
  })
}

function wrongAt(scenario: string, { id, status, errorMessage }: Check, { leftOutChecks }: Plan): string[] {
  const isLeftOut = Object.hasOwn(leftOutChecks, id)
  if (status === 'FAILURE' && !isLeftOut) return [`${scenario}: ${id}: ${errorMessage}`]
  return status === 'SUCCESS' && isLeftOut ? [`${scenario}: ${id} passes by now: leave it out no more`] : []
}
