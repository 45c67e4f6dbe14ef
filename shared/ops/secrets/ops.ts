import { z } from 'zod'
import { Slug } from '../../ids.ts'
import { Of, SecretName, SecretValue, VariableName } from '../../model/environment.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'What runs find in their environment, and nobody reads here.',
  docs: 'Settings of programs that nobody reads back: only their names are shown.',
}

export const rows = {
  list: op({
    id: 'secrets.list',
    method: 'GET',
    path: '/v1/orgs/{org}/secrets',
    credentials: ['key', 'session'],
    scope: [],
    role: 'member',
    mcp: { tool: 'list_secret_names', when: 'To see which secrets runs are given, by name. Values are never shown.' },
    cli: {
      help: ['  windlass secrets list', '  windlass secrets list --environment staging'],
      table: {
        columns: { SECRET: 'name', ENVIRONMENT: 'environment', CHANGED: 'updatedAt', 'BY?': 'updatedBy' },
        none: 'No secrets. Next: windlass secrets set <name>',
      },
    },
    summary: 'List the names of the secrets of the org, or of one environment without what it inherits.',
    input: z.strictObject({ org: Slug, environment: Of, ...PageQuery }),
    output: z.object({ secrets: z.array(SecretName), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  set: op({
    id: 'secrets.set',
    method: 'PUT',
    path: '/v1/orgs/{org}/secrets/{name}',
    credentials: ['session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'set_secret',
      when:
        'Does nothing: no tool sets a secret, and a value must never be sent to one. It answers where a ' +
        'person sets it.',
    },
    summary: 'Set a secret. Its value is not shown again; each process that starts from now on gets it.',
    input: z.strictObject({ org: Slug, name: VariableName, value: SecretValue, environment: Of }),
    inQuery: ['environment'],
    output: z.object({ secret: SecretName }),
    faults: ['NOT_FOUND', 'CONFLICT', 'SECRETS_UNAVAILABLE'],
    success: 200,
  }),
  delete: op({
    id: 'secrets.delete',
    method: 'DELETE',
    path: '/v1/orgs/{org}/secrets/{name}',
    credentials: ['session'],
    scope: [],
    role: 'admin',
    cli: {
      print: ['{name} is deleted'],
      help: ['  windlass secrets delete STRIPE_KEY --environment staging'],
    },
    summary: 'Delete a secret.',
    input: z.strictObject({ org: Slug, name: z.string().min(1).max(128), environment: Of }),
    output: z.object({}),
    faults: ['NOT_FOUND'],
    success: 204,
  }),
}
