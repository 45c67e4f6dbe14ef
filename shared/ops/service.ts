import { z } from 'zod'
import { op } from './op.ts'

export const service = {
  health: op({
    id: 'service.health',
    method: 'GET',
    path: '/healthz',
    door: 'public',
    scope: [],
    role: null,
    summary: 'Is the process up?',
    input: z.strictObject({}),
    output: z.object({ status: z.literal('ok'), version: z.string(), uptimeMs: z.int() }),
    faults: [],
    success: 200,
  }),
  ready: op({
    id: 'service.ready',
    method: 'GET',
    path: '/readyz',
    door: 'public',
    scope: [],
    role: null,
    summary: 'Can it serve: does the database answer?',
    input: z.strictObject({}),
    output: z.object({ status: z.literal('ready') }),
    faults: ['UNAVAILABLE'],
    success: 200,
  }),
  openapi: op({
    id: 'service.openapi',
    method: 'GET',
    path: '/v1/openapi.json',
    door: 'public',
    scope: [],
    role: null,
    summary: 'This API as an OpenAPI 3.1 document.',
    input: z.strictObject({}),
    output: z.record(z.string(), z.unknown()),
    faults: [],
    success: 200,
  }),
}
