import { z } from 'zod'
import { PoolRef, Slug } from '../../ids.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { PoolDemand, PoolSettings, RunLimits, RunnerPool } from '../../model/pool.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'
import { tokens } from './tokens.ts'

export const group: Group = {
  command: 'Groups of machines that execute runs.',
  docs: 'Groups of machines that execute runs, and the tokens by which a machine joins.',
}

/** What is left out stays as it is; `null` takes a value back. */
const SettingsChange = z.strictObject({
  isolation: PoolSettings.shape.isolation.unwrap().optional(),
  network: PoolSettings.shape.network.unwrap().optional(),
  reassignAfterMs: PoolSettings.shape.reassignAfterMs.unwrap().optional(),
  slots: PoolSettings.shape.slots.unwrap().optional(),
  labels: PoolSettings.shape.labels.unwrap().optional(),
  limits: z
    .strictObject({
      memoryMb: RunLimits.shape.memoryMb.unwrap().optional(),
      cpus: RunLimits.shape.cpus.unwrap().optional(),
      processes: RunLimits.shape.processes.unwrap().optional(),
      openFiles: RunLimits.shape.openFiles.unwrap().optional(),
      diskMb: RunLimits.shape.diskMb.unwrap().optional(),
    })
    .optional(),
  parkedMs: PoolSettings.shape.parkedMs.unwrap().optional(),
  drainMs: PoolSettings.shape.drainMs.unwrap().optional(),
})

export const rows = {
  list: op({
    id: 'pools.list',
    method: 'GET',
    path: '/v1/orgs/{org}/runner-pools',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    mcp: {
      tool: 'list_runner_pools',
      when: 'To see the pools of machines on which runs execute. A descriptor names one as `pool`.',
    },
    cli: {
      table: {
        columns: {
          POOL: 'name',
          ID: 'id',
          RUNNERS: 'runners',
          'QUEUED RUNS': 'queuedRuns',
          'ISOLATION?': 'settings.isolation',
          'CREATED?': 'createdAt',
        },
      },
    },
    summary: 'List the runner pools of an org.',
    input: z.strictObject({ org: Slug, ...PageQuery }),
    output: z.object({ runnerPools: z.array(RunnerPool), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  get: op({
    id: 'pools.get',
    method: 'GET',
    path: '/v1/runner-pools/{pool}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    cli: {
      fields: {
        pool: 'runnerPool.name',
        id: 'runnerPool.id',
        runners: 'runnerPool.runners',
        'queued runs': 'runnerPool.queuedRuns',
        created: 'runnerPool.createdAt',
        settings: 'runnerPool.settings.*',
      },
    },
    summary: 'Get one runner pool with its settings.',
    input: z.strictObject({ pool: PoolRef }),
    output: z.object({ runnerPool: RunnerPool }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  create: op({
    id: 'pools.create',
    method: 'POST',
    path: '/v1/orgs/{org}/runner-pools',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_runner_pool',
      when:
        'To make a new pool of machines that workflows can name. It is empty until machines join: see ' +
        'create_runner_registration_token.',
    },
    summary: 'Create a runner pool.',
    input: z.strictObject({ org: Slug, name: Slug, settings: SettingsChange.default({}) }),
    output: z.object({ runnerPool: RunnerPool }),
    faults: ['CONFLICT'],
    success: 201,
  }),
  update: op({
    id: 'pools.update',
    method: 'PATCH',
    path: '/v1/runner-pools/{pool}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'update_runner_pool',
      when:
        'To change how the machines of a pool execute runs: isolation, limits, labels, slots. They hear ' +
        'of it with their next heartbeat.',
      idempotent: true,
    },
    summary: 'Change the settings of a runner pool.',
    input: z.strictObject({ pool: PoolRef, settings: SettingsChange }),
    output: z.object({ runnerPool: RunnerPool }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  delete: op({
    id: 'pools.delete',
    method: 'DELETE',
    path: '/v1/runner-pools/{pool}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'delete_runner_pool',
      when: 'To remove a pool that has no runners, no unfinished runs and no workflow that names it.',
    },
    cli: {
      print: ['{pool} is deleted'],
      help: ['  windlass pools delete builders'],
    },
    summary: 'Delete an empty runner pool with its registration tokens.',
    input: z.strictObject({ pool: PoolRef }),
    output: z.object({}),
    faults: ['NOT_FOUND', 'POOL_IN_USE'],
    success: 204,
  }),
  demand: op({
    id: 'pools.demand',
    method: 'GET',
    path: '/v1/orgs/{org}/runner-pools/{pool}/demand',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    summary: 'How much work waits in a pool and how much room there is: what an autoscaler asks.',
    input: z.strictObject({ org: Slug, pool: PoolRef }),
    output: z.object({ demand: PoolDemand }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  ...tokens,
}
