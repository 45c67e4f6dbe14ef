import { Fault } from '@windlass/shared/errors.ts'
import { secretsOfRun } from '../environments/secrets.ts'
import { claimRuns } from '../placements/claim.ts'
import { registerRunner } from '../runners/register.ts'
import { journalFor } from '../journal/read.ts'
import { serveAgent } from '../runners/session.ts'
import { agentSettings } from '../runners/settings.ts'
import { selfOf } from '../runs/read.ts'
import { bundleBytes } from '../workflows/read.ts'
import { BytesAnswer, type HandlersFor, SocketAnswer } from './call.ts'

export const runnerSurface: HandlersFor<'runnerSurface'> = {
  register: async ({ input, deps, requestId }) => ({
    ...(await registerRunner(deps, input, requestId)),
    settings: agentSettings(deps.config),
  }),

  renew: () => {
    throw new Fault('UNAVAILABLE')
  },

  claims: async ({ input, runner, deps, gone }) => ({ offers: await claimRuns(deps, runner, input, gone) }),

  bundle: async ({ input, runner, deps }) =>
    new BytesAnswer(await bundleBytes(deps, runner.orgId, input.digest), 'application/gzip'),

  journal: async ({ input, runner, deps }) =>
    new BytesAnswer(Buffer.from(await journalFor(deps, runner, input)), 'application/json'),

  socket: ({ runner, deps }) => new SocketAnswer((socket) => serveAgent(deps, runner, socket)),

  self: async ({ input, program, deps }) => ({ run: await selfOf(deps, program, input.run) }),

  secrets: async ({ input, program, deps }) => ({ secrets: await secretsOfRun(deps, program, input.run) }),
}
