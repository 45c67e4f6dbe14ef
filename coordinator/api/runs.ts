import { Fault } from '@windlass/shared/errors.ts'
import { keyIn, made } from './keyed.ts'
import { decodeCursor, pageOf } from './page.ts'
import { partIn } from './part.ts'
import { liveStream, snapshot } from '../events/stream.ts'
import { deleteRun } from '../engine/commit/delete-run.ts'
import { type BulkAsk, startBulk } from '../bulk/start.ts'
import { cancelRun } from '../runs/cancel.ts'
import { listChildren } from '../runs/children.ts'
import { getRun, inputOf, listRuns, outputOf, refusedOutputOf } from '../runs/read.ts'
import { restartRun } from '../runs/restart.ts'
import { retryRun } from '../runs/retry.ts'
import { triggerOnce } from '../runs/once.ts'
import type { TriggerAsk } from '../engine/commit/trigger.ts'
import { startBatch } from '../runs/batch.ts'
import { startRun } from '../runs/start.ts'
import { whyOf } from '../runs/why.ts'
import { findWorkflow } from '../workflows/read.ts'
import { type HandlersFor, JsonText, SseAnswer } from './call.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import type { EnvironmentNames } from '../environments/names.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type RunsNeeds = Needs<
  | typeof cancelRun
  | typeof deleteRun
  | typeof findWorkflow
  | typeof getRun
  | typeof inputOf
  | typeof listChildren
  | typeof listRuns
  | typeof liveStream
  | typeof outputOf
  | typeof refusedOutputOf
  | typeof restartRun
  | typeof retryRun
  | typeof snapshot
  | typeof startBatch
  | typeof startRun
  | typeof startBulk
  | typeof triggerOnce
  | typeof whyOf
> & { environments: EnvironmentNames; turns: { orgCalls: OrgTurns; orgBatches: OrgTurns } }

const KEY_OF_BATCH = 'A batch takes no `Idempotency-Key`: give each item an `idempotencyKey` of its own.'

export const runs = (deps: RunsNeeds): HandlersFor<'runs'> => ({
  trigger: async (call) => {
    const { input, caller } = call
    const { idempotencyKey: _, ...fields } = input
    const ask: TriggerAsk = { ...fields, trigger: { kind: caller.via === 'mcp' ? 'mcp' : 'api' } }
    const key = keyIn(call)
    const once = () => triggerOnce(deps, call, ask, key!)
    const started = key === undefined ? startRun(deps, call, ask) : deps.turns.orgCalls.run(caller.orgId, call, once)
    return made(await started)
  },

  batch: async (call) => {
    if (call.header('idempotency-key') !== undefined)
      throw new Fault('VALIDATION_FAILED', { path: 'idempotencyKey' }, KEY_OF_BATCH)
    return { results: await startBatch(deps, call, call.input) }
  },

  list: async ({ input, caller }) => {
    const { org: _, workflow, limit, cursor, ...filter } = input
    const workflowId = workflow === undefined ? undefined : (await findWorkflow(deps, caller.orgId, workflow))?.id
    if (workflow !== undefined && workflowId === undefined) return { runs: [], nextCursor: null }
    // By its name also runs of one that is gone are found.
    const isId = filter.environment?.includes('_') ?? false
    const environment = isId ? await deps.environments.find(caller.orgId, filter.environment!) : filter.environment
    if (isId && environment === undefined) return { runs: [], nextCursor: null }
    const before = decodeCursor(cursor, /^run_[0-9a-z]{26}$/)
    const ask = { ...filter, orgId: caller.orgId, workflowId, environment, before, limit }
    const { runs: found, fitting } = await listRuns(deps, ask)
    const { rows, nextCursor } = pageOf(found, fitting, (run) => run.id)
    return { runs: rows, nextCursor }
  },

  get: async ({ input, caller }) => ({ run: await getRun(deps, caller, input.run) }),

  input: async ({ input: { run, offset }, caller }) => payload('input', await inputOf(deps, caller, run), offset),

  output: async ({ input: { run, offset, refused }, caller }) =>
    payload('output', await (refused ? refusedOutputOf : outputOf)(deps, caller, run), offset),

  events: async (call) => new JsonText(await snapshot(deps, { ...call.input, bytes: call.pageBytes }, call)),

  stream: async (call) => {
    const { input, caller } = call
    // What a browser sends when it reconnects by itself; it knows better than the address it was first given.
    const lastEventId = call.header('last-event-id')
    return new SseAnswer(await liveStream(deps, caller.orgId, { ...input, lastEventId }))
  },

  cancel: async ({ input, caller }) => ({ run: await cancelRun(deps, caller, input.run, input.reason) }),

  retry: async (call) => made(await retryRun(deps, call, { ...call.input, key: keyIn(call) })),

  delete: async ({ input, caller }) => {
    await deleteRun(deps, caller, input.run)
    return {}
  },

  children: async ({ input, caller }) => {
    const { run, status, limit, cursor } = input
    const before = decodeCursor(cursor, /^run_[0-9a-z]{26}$/)
    const ask = { orgId: caller.orgId, parentRunId: run, status, before, limit }
    const { runs: found, fitting } = await listChildren(deps, ask)
    const { rows, nextCursor } = pageOf(found, fitting, (child) => child.id)
    return { runs: rows, nextCursor }
  },

  why: async ({ input, caller }) => ({ why: await whyOf(deps, caller, input.run) }),

  restart: async ({ input, caller }) => ({ run: await restartRun(deps, caller, input.run) }),

  bulkCancel: async ({ input: { filter, reason, dryRun }, caller }) =>
    made(await startBulk(deps, caller, { kind: 'bulk-cancel', filter, reason, dryRun })),

  bulkRetry: async (call) => {
    const { filter, dryRun } = call.input
    const ask: BulkAsk = { kind: 'bulk-retry', filter, reason: '', dryRun, idempotencyKey: keyIn(call) }
    return made(await startBulk(deps, call.caller, ask))
  },
})

/** A value by its JSON text; with an offset a part of this text. */
function payload(name: 'input' | 'output', json: string, offset: number | undefined): JsonText {
  if (offset === undefined) return new JsonText(`{"${name}":${json}}`)
  const { text, part } = partIn({ text: json, from: 0, chars: json.length }, offset)
  return new JsonText(JSON.stringify({ [name]: text, part }))
}
