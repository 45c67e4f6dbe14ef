import { z } from 'zod'
import { EnvironmentRef, Slug } from '../../ids.ts'
import { Environment } from '../../model/environment.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'Named sets of variables and secrets, such as staging.',
  short: 'env',
  docs: 'Named sets of variables and secrets over those of the org.',
}

export const rows = {
  list: op({
    id: 'environments.list',
    method: 'GET',
    path: '/v1/orgs/{org}/environments',
    credentials: ['key', 'session'],
    scope: [],
    role: 'viewer',
    mcp: { tool: 'list_environments', when: 'To see the environments that trigger_now takes as `environment`.' },
    cli: {
      table: {
        columns: { ENVIRONMENT: 'name', ID: 'id', 'CREATED?': 'createdAt' },
        none: 'No environments. Next: windlass env create <name>',
      },
    },
    summary: 'List the environments of an org.',
    input: z.strictObject({ org: Slug, ...PageQuery }),
    output: z.object({ environments: z.array(Environment), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  create: op({
    id: 'environments.create',
    method: 'POST',
    path: '/v1/orgs/{org}/environments',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_environment',
      when:
        'To make a new environment, such as `staging`, with variables of its own besides those of the ' +
        'org. create_variable fills it.',
    },
    cli: {
      args: { name: 'lower-case letters, digits and dashes' },
      print: ['{environment.name} is there'],
      note: ['Next: windlass vars set -e {name} NAME=VALUE, then windlass run <workflow> -e {name}'],
      help: ['  windlass env create staging'],
    },
    summary: 'Create an environment. It inherits the variables and secrets of the org.',
    input: z.strictObject({ org: Slug, name: Slug }),
    output: z.object({ environment: Environment }),
    faults: ['CONFLICT'],
    success: 201,
  }),
  delete: op({
    id: 'environments.delete',
    method: 'DELETE',
    path: '/v1/orgs/{org}/environments/{environment}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'delete_environment',
      when:
        'To delete an environment with all its variables and secrets, which do not come back. It is ' +
        'refused while unfinished runs use it, and to an API key while it holds secrets.',
    },
    cli: {
      print: ['{environment} is deleted, with its variables and secrets'],
    },
    summary: 'Delete an environment with its variables and secrets. Refused while unfinished runs use it.',
    input: z.strictObject({ org: Slug, environment: EnvironmentRef }),
    output: z.object({}),
    faults: ['NOT_FOUND', 'ENVIRONMENT_IN_USE'],
    success: 204,
  }),
}
