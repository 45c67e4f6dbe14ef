import { z } from 'zod'
import { KeyId, Slug } from '../../ids.ts'
import { ApiKey } from '../../model/api-key.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import { Role, Scope } from '../../scopes.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'API keys: list, make, revoke.',
  docs: 'Credentials of programs: what they may do, when they were last used, and their end.',
}

export const rows = {
  list: op({
    id: 'keys.list',
    method: 'GET',
    path: '/v1/orgs/{org}/api-keys',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'list_api_keys',
      when:
        'To see which API keys exist, what they may do and when they were last used. Their secret part is ' +
        'shown nowhere.',
    },
    cli: {
      table: {
        columns: {
          KEY: 'id',
          NAME: 'name',
          'BEGINS?': '{prefix}…',
          ROLE: 'role',
          'SCOPES?': '{scopes|all}',
          EXPIRES: '{expiresAt|never}',
          REVOKED: 'revokedAt',
          'LAST USED?': 'lastUsedAt',
        },
      },
    },
    summary: 'List the API keys of an org, newest first, without their secret part.',
    input: z.strictObject({ org: Slug, ...PageQuery }),
    output: z.object({ apiKeys: z.array(ApiKey), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  create: op({
    id: 'keys.create',
    method: 'POST',
    path: '/v1/orgs/{org}/api-keys',
    credentials: ['session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_api_key',
      when: 'Does nothing: no tool makes an API key. It answers where a person makes one.',
    },
    summary: 'Make an API key. The whole key is in this answer and nowhere else.',
    input: z.strictObject({
      org: Slug,
      name: z.string().min(1).max(100),
      role: Role.meta({ description: 'At most that of the session.' }),
      scopes: z.array(Scope).max(50).default([]),
      expiresAt: z.int().optional().meta({ description: 'Milliseconds since the Unix epoch; left out: never.' }),
    }),
    output: z.object({ apiKey: ApiKey, key: z.string().meta({ description: 'Shown once.' }) }),
    faults: [],
    success: 201,
  }),
  revoke: op({
    id: 'keys.revoke',
    method: 'DELETE',
    path: '/v1/orgs/{org}/api-keys/{key}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    stops: true,
    mcp: {
      tool: 'revoke_api_key',
      when:
        'To end an API key for good, for instance when it has leaked. It needs an id from list_api_keys; ' +
        'be sure that it is not the key of this connection.',
    },
    cli: {
      print: ['{key} is revoked'],
      note: [
        'Schedules that it has made go on: {schedules}. See: windlass schedules list',
        'Registration tokens that it has made are revoked: {registrationTokens}. ' +
          'Agents that have joined by them stay: windlass audit list --action runners.register',
        'Bulk jobs that it had under way are cancelled: {jobs}. See: windlass jobs list',
      ],
      help: ['  windlass keys list', '  windlass keys revoke key_…'],
    },
    summary: 'Revoke an API key. It stops to serve within a second; again is no error.',
    input: z.strictObject({ org: Slug, key: KeyId }),
    output: z.object({
      schedules: z
        .int()
        .meta({ description: 'How many schedules it has made that go on; their runs count for it still.' }),
      registrationTokens: z
        .int()
        .meta({ description: 'How many registration tokens that it has made were revoked with it.' }),
      jobs: z.int().meta({
        description: 'How many bulk jobs that it had under way were cancelled with it. What they have done stays done.',
      }),
    }),
    faults: ['NOT_FOUND'],
    success: 200,
  }),
}
