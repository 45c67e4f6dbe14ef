import { z } from 'zod'
import { PoolId, RunnerId, Slug } from '../ids.ts'
import { NextCursor, PageQuery } from '../model/page.ts'
import { Runner, RunnerPool, RunnerStatus } from '../model/runner.ts'
import { op } from './op.ts'

export const pools = {
  list: op({
    id: 'pools.list',
    method: 'GET',
    path: '/v1/orgs/{org}/runner-pools',
    door: 'caller',
    scope: [],
    role: 'member',
    mcp: {
      tool: 'list_runner_pools',
      when: 'To see the pools of machines on which runs execute. A descriptor names one as `pool`.',
    },
    summary: 'List the runner pools of an org.',
    input: z.strictObject({ org: Slug, ...PageQuery }),
    output: z.object({ runnerPools: z.array(RunnerPool), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  create: op({
    id: 'pools.create',
    method: 'POST',
    path: '/v1/orgs/{org}/runner-pools',
    door: 'caller',
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_runner_pool',
      when: 'To make a new pool of machines that workflows can name. It is empty until machines join: see create_runner_registration_token.',
    },
    summary: 'Create a runner pool.',
    input: z.strictObject({ org: Slug, name: Slug }),
    output: z.object({ runnerPool: RunnerPool }),
    faults: ['CONFLICT'],
    success: 201,
  }),
  createToken: op({
    id: 'pools.createToken',
    method: 'POST',
    path: '/v1/runner-pools/{pool}/registration-tokens',
    door: 'caller',
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_runner_registration_token',
      when: 'To let a new machine join a pool: `windlass agent` takes the token there. It is shown once, so hand it to the person at once and keep it nowhere.',
    },
    summary: 'Mint a token by which an agent joins the pool. It is shown once.',
    input: z.strictObject({
      pool: PoolId,
      reusable: z.boolean().default(false),
      uses: z.int().min(1).max(1000).optional().meta({
        description: 'How often it serves: once, or 100 times when `reusable`; more than 1 wants `reusable`.',
      }),
      ttlSeconds: z.int().min(10).max(86_400).default(900).meta({ description: 'At most 24 h; 15 min by default.' }),
    }),
    output: z.object({ registrationToken: z.object({ token: z.string(), uses: z.int(), expiresAt: z.int() }) }),
    faults: ['NOT_FOUND'],
    success: 201,
  }),
}

export const runners = {
  list: op({
    id: 'runners.list',
    method: 'GET',
    path: '/v1/orgs/{org}/runners',
    door: 'caller',
    scope: [],
    role: 'member',
    mcp: {
      tool: 'list_runners',
      when: 'To see which machines are up, how busy they are and which pool they are in, for instance when runs stay queued.',
    },
    summary: 'List the runners of an org.',
    input: z.strictObject({
      org: Slug,
      pool: z.union([PoolId, Slug]).optional(),
      status: RunnerStatus.optional(),
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
    door: 'caller',
    scope: [],
    role: 'member',
    mcp: {
      tool: 'get_runner',
      when: 'To see one machine: when it was last heard of, its slots, labels and version. It needs an id from list_runners.',
    },
    summary: 'Get one runner.',
    input: z.strictObject({ runner: RunnerId }),
    output: z.object({ runner: Runner }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
}
