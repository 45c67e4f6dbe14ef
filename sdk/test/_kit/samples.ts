import type { ServerResponse } from 'node:http'
import { newId } from '@windlass/shared/ids.ts'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import type { Job } from '@windlass/shared/model/job.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import type { Intake, Runner } from '@windlass/shared/model/runner.ts'
import type { Why } from '@windlass/shared/model/why.ts'
import type { Workflow, WorkflowVersion } from '@windlass/shared/model/workflow.ts'
import { ORG } from './fake-service.ts'

const AT = Date.UTC(2026, 10, 20, 12)

/** A plausible run; say what matters. */
export function aRun(facts: Partial<Run> = {}): Run {
  return {
    id: newId('run'),
    org: ORG,
    workflow: { id: newId('wf'), slug: 'hello', version: 2 },
    status: 'queued',
    trigger: { kind: 'api' },
    environment: null,
    tags: [],
    priority: 0,
    attempt: 1,
    parentRunId: null,
    rootRunId: null,
    retryOf: null,
    pool: { id: newId('pool'), name: 'default' },
    runner: null,
    isolation: null,
    lost: null,
    waiting: null,
    blocked: null,
    error: null,
    createdAt: AT,
    queuedAt: AT,
    claimedAt: null,
    startedAt: null,
    finishedAt: null,
    deletedAt: null,
    computeMs: 0,
    tokens: { input: 0, output: 0, cachedInput: 0, reasoning: 0 },
    costMicros: 0,
    budget: null,
    ...facts,
  }
}

/** An open question. */
export function anInput(facts: Partial<PendingInput> = {}): PendingInput {
  return {
    id: newId('inp'),
    run: { id: newId('run'), workflow: { id: newId('wf'), slug: 'approval' } },
    status: 'open',
    prompt: 'Ship it?',
    schema: null,
    createdAt: AT,
    dueAt: null,
    closedAt: null,
    answeredBy: null,
    ...facts,
  }
}

export function aWhy(facts: Partial<Why> = {}): Why {
  const summary = 'The pool `default` has no runner.'
  const change = 'Whoever may add a machine.'
  return {
    run: newId('run'),
    status: 'queued',
    since: AT,
    summary,
    process: null,
    losses: [],
    causes: [{ code: 'NO_RUNNER', message: summary, since: AT, until: null, change }],
    runners: [],
    ...facts,
  }
}

/** A machine that is up and has nothing to do. */
export function aRunner(facts: Partial<Runner> = {}): Runner {
  return {
    id: newId('rnr'),
    org: ORG,
    pool: { id: newId('pool'), name: 'default' },
    name: 'build-1',
    status: 'online',
    intake: anIntake(),
    quarantine: null,
    unready: [],
    labels: [],
    slots: 8,
    activeRuns: 0,
    live: { offered: 0, executing: 0, parked: 0 },
    currentRuns: [],
    version: '0.1.0',
    protocol: 1,
    upgrade: null,
    platform: 'linux-x64',
    isolation: { level: 'process', user: 'own', cgroup: true, network: 'host' },
    createdAt: AT,
    lastPollAt: AT,
    lastHeartbeatAt: AT,
    copyRefusedAt: null,
    ...facts,
  }
}

export function anIntake(facts: Partial<Intake> = {}): Intake {
  return { state: 'open', epoch: 3, since: AT, by: null, reason: '', deadlineAt: null, onDeadline: null, ...facts }
}

export function aWorkflow(facts: Partial<Workflow> = {}): Workflow {
  const plain = {
    slug: 'hello',
    name: 'hello',
    description: '',
    version: 1,
    pool: 'default',
    process: 'fresh' as const,
    disabledAt: null,
    disabledBy: null,
    deletedAt: null,
    purgeAt: null,
  }
  return { id: newId('wf'), org: ORG, ...plain, createdAt: AT, updatedAt: AT, ...facts }
}

export function aVersion(facts: Partial<WorkflowVersion> = {}): WorkflowVersion {
  return {
    id: newId('ver'),
    workflow: { id: newId('wf'), slug: 'hello' },
    version: 1,
    descriptor: {},
    inputSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    outputSchema: { type: 'string' },
    bundleDigest: 'a'.repeat(64),
    bundleBytes: 1234,
    warnings: [],
    createdAt: AT,
    createdBy: 'key_test',
    ...facts,
  }
}

type SampleEvent = [channel: RunEvent['channel'], type: string, data?: Record<string, unknown>]

/** Events with cursors 1, 2, 3 … */
export function events(...samples: SampleEvent[]): RunEvent[] {
  return samples.map(([channel, type, data = {}], index) => ({
    cursor: index + 1,
    at: AT + index,
    channel,
    type,
    data,
  }))
}

export function sseText(event: RunEvent): string {
  return `event: ${event.type}\ndata: ${JSON.stringify(event)}\nid: ${event.cursor}\n\n`
}

export const SSE_DONE = 'event: done\ndata: {}\n\n'

export function sendSseHead(response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  response.flushHeaders()
}

/** The whole log at once, from where the reader stands. */
export function sendStream(response: ServerResponse, log: RunEvent[], args: Record<string, unknown>): void {
  const channels = args['channels'] as string[]
  sendSseHead(response)
  for (const event of log)
    if (event.cursor > Number(args['since']) && channels.includes(event.channel)) response.write(sseText(event))
  response.end(SSE_DONE)
}

export function aJob(facts: Partial<Job> = {}): Job {
  return {
    id: newId('job'),
    org: ORG,
    kind: 'bulk-cancel',
    filter: { status: ['queued'] },
    dryRun: false,
    status: 'running',
    error: null,
    matched: 0,
    done: 0,
    failed: 0,
    failures: {},
    createdAt: AT,
    deadlineAt: AT + 86_400_000,
    finishedAt: null,
    ...facts,
  }
}
