import { z } from 'zod'
import { PoolRef, RegistrationTokenId } from '../../ids.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { RegistrationToken } from '../../model/registration-token.ts'
import { op } from '../op.ts'

/** Rows of the group `pools`. */
export const tokens = {
  createToken: op({
    id: 'pools.createToken',
    method: 'POST',
    path: '/v1/runner-pools/{pool}/registration-tokens',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_runner_registration_token',
      when:
        'To let a new machine join a pool: `windlass agent` takes the token there. It is shown once, so ' +
        'hand it to the person at once and keep it nowhere.',
    },
    command: 'pools token',
    summary: 'Mint a token by which an agent joins the pool. It is shown once.',
    input: z.strictObject({
      pool: PoolRef,
      reusable: z.boolean().default(false),
      uses: z.int().min(1).max(1000).optional().meta({
        description: 'How often it serves: once, or 100 times when `reusable`; more than 1 wants `reusable`.',
      }),
      ttlMs: z.int().min(10_000).max(86_400_000).default(900_000).meta({
        description: 'How long it serves: at most 24 h; 15 min by default.',
      }),
    }),
    output: z.object({
      registrationToken: z.object({
        id: RegistrationTokenId,
        token: z.string().meta({ description: 'Shown once.' }),
        uses: z.int(),
        expiresAt: z.int(),
      }),
    }),
    faults: ['NOT_FOUND'],
    success: 201,
  }),
  listTokens: op({
    id: 'pools.listTokens',
    method: 'GET',
    path: '/v1/runner-pools/{pool}/registration-tokens',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'list_runner_registration_tokens',
      when:
        'To see by which tokens machines may join a pool at present, and who made them. The tokens themselves ' +
        'are shown nowhere.',
    },
    command: 'pools tokens',
    cli: {
      table: {
        columns: {
          TOKEN: 'id',
          'USES LEFT': 'usesLeft',
          EXPIRES: 'expiresAt',
          BY: 'createdBy',
          'CREATED?': 'createdAt',
        },
        none: 'No registration tokens. Next: windlass pools token <pool>',
      },
    },
    summary: 'List the registration tokens of a pool that still serve, newest first, without the tokens themselves.',
    input: z.strictObject({ pool: PoolRef, ...PageQuery }),
    output: z.object({ registrationTokens: z.array(RegistrationToken), nextCursor: NextCursor }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
  revokeToken: op({
    id: 'pools.revokeToken',
    method: 'DELETE',
    path: '/v1/registration-tokens/{token}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    stops: true,
    mcp: {
      tool: 'revoke_runner_registration_token',
      when:
        'To let no further machine join by a token, for instance when it has leaked. It needs an id from ' +
        'list_runner_registration_tokens; machines that have joined stay.',
    },
    cli: {
      print: ['{token} is revoked'],
      note: ['Machines that have joined by it stay: windlass audit list --action runners.register --actor {token}'],
      help: ['  windlass pools tokens default', '  windlass pools revoke-token rtok_…'],
    },
    summary: 'Revoke a registration token. Agents that have joined by it stay.',
    input: z.strictObject({ token: RegistrationTokenId }),
    output: z.object({}),
    faults: ['NOT_FOUND'],
    success: 204,
  }),
}
