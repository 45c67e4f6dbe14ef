import { z } from 'zod'
import { Slug, RunId, RunnerId } from '../../ids.ts'
import { AgentSettings } from '../../wire/agent.ts'
import { Offers } from '../../wire/offers.ts'
import type { Group } from '../group.ts'
import { op } from '../op.ts'

/** Agents and programs speak it, and no document tells of it. */
export const group: Group = {}

/**
 * What installed agents and running programs speak. Routed and checked like the rest; absent from OpenAPI, MCP and CLI.
 */
export const rows = {
  register: op({
    id: 'runnerSurface.register',
    method: 'POST',
    path: '/runner/v1/register',
    credentials: [],
    scope: [],
    role: null,
    summary: 'Join a pool with a registration token and the public half of a key pair made on the host.',
    input: z.strictObject({
      token: z.string().min(1).max(200),
      name: z.string().min(1).max(100),
      /** An Ed25519 public key as JWK. The private half never leaves the host. */
      publicKey: z.strictObject({
        kty: z.literal('OKP', { error: 'must be "OKP"' }),
        crv: z.literal('Ed25519', { error: 'must be "Ed25519"' }),
        x: z.string().length(43),
      }),
      labels: z.array(z.string().min(1).max(64)).max(50).default([]),
      slots: z.int().min(1).max(1024),
      version: z.string().max(64),
      platform: z.string().max(64),
    }),
    output: z.object({ runner: RunnerId, org: Slug, pool: Slug, settings: AgentSettings }),
    faults: ['UNAUTHENTICATED', 'REGISTRATION_TOKEN_USED', 'CONFLICT'],
    success: 201,
    carries: 'agent',
  }),
  renew: op({
    id: 'runnerSurface.renew',
    method: 'POST',
    path: '/runner/v1/identity',
    credentials: ['runner'],
    scope: [],
    role: null,
    summary: 'Replace the public key of this runner by a new one; the request is signed with the one before.',
    input: z.strictObject({
      publicKey: z.strictObject({
        kty: z.literal('OKP', { error: 'must be "OKP"' }),
        crv: z.literal('Ed25519', { error: 'must be "Ed25519"' }),
        x: z.string().length(43),
      }),
    }),
    output: z.object({ runner: RunnerId, renewAfterMs: z.int() }),
    faults: ['RATE_LIMITED'],
    success: 200,
    carries: 'agent',
  }),
  claims: op({
    id: 'runnerSurface.claims',
    method: 'POST',
    path: '/runner/v1/claims',
    credentials: ['runner'],
    scope: [],
    role: null,
    summary: 'Wait for work; answers with none after `waitMs`. Without slots: end the polls of this runner.',
    input: z.strictObject({ slots: z.int().min(0).max(1024), waitMs: z.int().min(0).max(25_000).default(25_000) }),
    output: Offers,
    faults: [],
    success: 200,
    carries: 'agent',
  }),
  bundle: op({
    id: 'runnerSurface.bundle',
    method: 'GET',
    path: '/runner/v1/bundles/{digest}',
    credentials: ['runner'],
    scope: [],
    role: null,
    summary: 'Fetch a bundle (gzipped tar) by its SHA-256.',
    input: z.strictObject({ digest: z.string().regex(/^[0-9a-f]{64}$/, 'must be a SHA-256 in hex') }),
    output: z.string(),
    faults: ['NOT_FOUND', 'UNAVAILABLE'],
    success: 200,
    wire: 'bytes',
  }),
  socket: op({
    id: 'runnerSurface.socket',
    method: 'GET',
    path: '/runner/v1/socket',
    credentials: ['runner'],
    scope: [],
    role: null,
    summary: 'The one WebSocket of an agent: see shared/wire/agent.ts for its frames.',
    input: z.strictObject({}),
    output: z.string(),
    faults: ['UPGRADE_REQUIRED'],
    success: 200,
    wire: 'socket',
  }),
  journal: op({
    id: 'runnerSurface.journal',
    method: 'GET',
    path: '/runner/v1/journals/{run}',
    credentials: ['runner'],
    scope: [],
    role: null,
    summary: 'Fetch the journal of a run that was offered to this runner and is too long for the offer.',
    input: z.strictObject({ run: RunId, epoch: z.int().min(0) }),
    output: z.string(),
    faults: ['NOT_FOUND', 'STALE_PLACEMENT'],
    success: 200,
    wire: 'bytes',
  }),
  self: op({
    id: 'runnerSurface.self',
    method: 'GET',
    path: '/runner/v1/runs/{run}',
    credentials: ['run'],
    scope: [],
    role: null,
    summary: 'The run as its own program may see it.',
    input: z.strictObject({ run: RunId }),
    output: z.object({ run: z.object({ id: RunId, status: z.string(), attempt: z.int(), epoch: z.int() }) }),
    faults: ['NOT_FOUND', 'STALE_PLACEMENT'],
    success: 200,
  }),
  secrets: op({
    id: 'runnerSurface.secrets',
    method: 'GET',
    path: '/runner/v1/runs/{run}/secrets',
    credentials: ['run'],
    scope: [],
    role: null,
    summary: 'The secrets of the run, as they are now: those of its environment over those of the org.',
    input: z.strictObject({ run: RunId }),
    output: z.object({ secrets: z.record(z.string(), z.string()) }),
    faults: ['NOT_FOUND', 'STALE_PLACEMENT', 'SECRETS_UNAVAILABLE'],
    success: 200,
  }),
}
