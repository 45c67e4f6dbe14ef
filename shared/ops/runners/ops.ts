import { z } from 'zod'
import { PoolRef, RunnerId, Slug } from '../../ids.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { DrainPlan, IntakeState, OnDeadline, Runner, RunnerStatus } from '../../model/runner.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'The machines themselves.',
  docs: 'The machines themselves: agents that were installed.',
}

const Reason = z.string().max(500).default('').meta({ description: 'For the audit log and whoever asks why.' })
const Epoch = z.int().min(0).optional().meta({
  description: 'Only if `intake.epoch` is still this; else `CONFLICT`, and nothing changes.',
})

export const rows = {
  list: op({
    id: 'runners.list',
    method: 'GET',
    path: '/v1/orgs/{org}/runners',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    mcp: {
      tool: 'list_runners',
      when:
        'To see which machines are up, how busy they are and which pool they are in, for instance when ' +
        'runs stay queued.',
    },
    summary: 'List the runners of an org.',
    input: z.strictObject({
      org: Slug,
      pool: PoolRef.optional().meta({ description: 'Only those of this pool: its name or id.' }),
      status: RunnerStatus.optional(),
      intake: IntakeState.optional().meta({ description: 'Only those that are so.' }),
      ...PageQuery,
    }),
    output: z.object({ runners: z.array(Runner), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'runners.get',
    method: 'GET',
    path: '/v1/runners/{runner}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    mcp: {
      tool: 'get_runner',
      when:
        'To see one machine: when it was last heard of, its slots, labels and version, and how far a ' +
        'drain is. It needs an id from list_runners.',
    },
    summary: 'Get one runner.',
    input: z.strictObject({ runner: RunnerId }),
    output: z.object({ runner: Runner }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  plan: op({
    id: 'runners.plan',
    method: 'GET',
    path: '/v1/runners/{runner}/drain',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    mcp: {
      tool: 'plan_runner_drain',
      when:
        'Before drain_runner, to see what the machine executes, how long that may take and whether others ' +
        'take over; changes nothing.',
    },
    summary: 'What a drain of the runner would meet, or what it still waits for.',
    input: z.strictObject({ runner: RunnerId }),
    output: z.object({ plan: DrainPlan }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  cordon: op({
    id: 'runners.cordon',
    method: 'POST',
    path: '/v1/runners/{runner}/cordon',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    stops: true,
    mcp: {
      tool: 'cordon_runner',
      when: 'To give a machine no new runs while everything that it has goes on. Undone by resume_runner.',
      idempotent: true,
    },
    cli: {
      print: ['{runner.name} is {runner.intake.state} (epoch {runner.intake.epoch})'],
      help: [
        '<runner> is its id, or its name where no other has it.',
        'What it has goes on; `windlass runners resume` undoes it.',
        "  windlass runners cordon build-1 --reason 'looks slow'",
      ],
    },
    summary: 'Give a runner no new work.',
    input: z.strictObject({ runner: RunnerId, reason: Reason, epoch: Epoch }),
    output: z.object({ runner: Runner }),
    faults: ['NOT_FOUND', 'CONFLICT', 'RUNNER_REVOKED'],
    success: 200,
  }),
  drain: op({
    id: 'runners.drain',
    method: 'POST',
    path: '/v1/runners/{runner}/drain',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    stops: true,
    mcp: {
      tool: 'drain_runner',
      when:
        'Before a machine is shut down or updated: it gets nothing new, what only waits moves elsewhere, ' +
        'what executes ends. It is over when get_runner says `drained`.',
      idempotent: true,
    },
    summary: 'Empty a runner: no new work, what waits moves, what executes ends.',
    input: z.strictObject({
      runner: RunnerId,
      deadlineMs: z
        .int()
        .min(1000)
        .max(30 * 86_400_000)
        .default(3_600_000)
        .meta({ description: 'From now on; 1 h by default.' }),
      onDeadline: OnDeadline.default('leave'),
      reason: Reason,
      epoch: Epoch,
    }),
    output: z.object({ runner: Runner }),
    faults: ['NOT_FOUND', 'CONFLICT', 'RUNNER_REVOKED'],
    success: 200,
  }),
  resume: op({
    id: 'runners.resume',
    method: 'POST',
    path: '/v1/runners/{runner}/resume',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'resume_runner',
      when: 'To undo cordon_runner or drain_runner, or to end the quarantine of a machine that was mended.',
      idempotent: true,
    },
    cli: {
      print: ['{runner.name} takes work (epoch {runner.intake.epoch})'],
      help: ['<runner> is its id, or its name where no other has it.', '  windlass runners resume build-1'],
    },
    summary: 'Give a runner work again: undoes cordon, drain and quarantine.',
    input: z.strictObject({ runner: RunnerId, reason: Reason, epoch: Epoch }),
    output: z.object({ runner: Runner }),
    faults: ['NOT_FOUND', 'CONFLICT', 'RUNNER_REVOKED'],
    success: 200,
  }),
  revoke: op({
    id: 'runners.revoke',
    method: 'POST',
    path: '/v1/runners/{runner}/revoke',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    stops: true,
    mcp: {
      tool: 'revoke_runner',
      when:
        'When a machine or its key is not trusted any more: at once and for good. Its runs start again ' +
        'elsewhere; to stop it gently use drain_runner.',
      destructive: true,
      idempotent: true,
    },
    summary: 'Shut a runner out for good: its identity and the tokens of its runs are dead within 5 s.',
    input: z.strictObject({ runner: RunnerId, reason: Reason }),
    output: z.object({ runner: Runner }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  deregister: op({
    id: 'runners.deregister',
    method: 'DELETE',
    path: '/v1/runners/{runner}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    stops: true,
    mcp: {
      tool: 'deregister_runner',
      when:
        'To forget a machine that is gone: it must be offline or revoked, and have no runs, unless ' +
        '`force` is given.',
    },
    summary: 'Forget a runner that is offline or revoked and has no runs; `force` revokes it first.',
    input: z.strictObject({
      runner: RunnerId,
      force: z.boolean().default(false).meta({ description: 'Revokes it first, whatever it executes.' }),
    }),
    output: z.object({}),
    faults: ['NOT_FOUND', 'RUNNER_BUSY'],
    success: 204,
  }),
}
