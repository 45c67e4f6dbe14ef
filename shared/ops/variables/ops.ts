import { z } from 'zod'
import { Slug } from '../../ids.ts'
import { Of, Variable, VariableName, VariableValue } from '../../model/environment.ts'
import { NextCursor, PageQuery } from '../../model/page.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

export const group: Group = {
  command: 'What runs find in their environment, for everybody to read.',
  short: 'vars',
  docs: 'Settings of programs that anybody in the org may read.',
}

export const rows = {
  list: op({
    id: 'variables.list',
    method: 'GET',
    path: '/v1/orgs/{org}/variables',
    credentials: ['key', 'session'],
    scope: [],
    role: 'viewer',
    mcp: {
      tool: 'list_variables',
      when:
        'To read the non-secret variables that programs find in process.env: those of the org, or of one ' +
        '`environment` without what it inherits.',
    },
    cli: {
      help: ['  windlass vars list', '  windlass vars list --environment staging'],
      table: {
        columns: { VARIABLE: 'name', VALUE: 'value', ENVIRONMENT: 'environment', 'CHANGED?': 'updatedAt' },
        none: 'No variables. Next: windlass vars set NAME=VALUE',
      },
    },
    summary: 'List the variables of the org, or of one environment without what it inherits.',
    input: z.strictObject({ org: Slug, environment: Of, ...PageQuery }),
    output: z.object({ variables: z.array(Variable), nextCursor: NextCursor }),
    faults: [],
    success: 200,
  }),
  set: op({
    id: 'variables.set',
    method: 'PUT',
    path: '/v1/orgs/{org}/variables/{name}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'create_variable',
      when:
        'To set a non-secret variable, new or not, for runs that start from now on. Anybody in the org ' +
        'can read it: passwords and keys belong into secrets, see set_secret.',
      destructive: true,
    },
    summary: 'Set a variable. Runs that have started keep what they had.',
    input: z.strictObject({ org: Slug, name: VariableName, value: VariableValue, environment: Of }),
    inQuery: ['environment'],
    output: z.object({ variable: Variable }),
    faults: ['NOT_FOUND', 'CONFLICT'],
    success: 200,
  }),
  delete: op({
    id: 'variables.delete',
    method: 'DELETE',
    path: '/v1/orgs/{org}/variables/{name}',
    credentials: ['key', 'session'],
    scope: [],
    role: 'admin',
    mcp: {
      tool: 'delete_variable',
      when:
        'To remove a variable; runs that have started keep it. list_variables has its value, should it ' +
        'have to come back.',
    },
    cli: {
      print: ['{name} is deleted'],
      help: ['  windlass vars delete REGION --environment staging'],
    },
    summary: 'Delete a variable.',
    input: z.strictObject({ org: Slug, name: z.string().min(1).max(128), environment: Of }),
    output: z.object({}),
    faults: ['NOT_FOUND'],
    success: 204,
  }),
}
